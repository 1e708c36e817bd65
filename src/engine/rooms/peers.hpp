// SPDX-License-Identifier: BSD-3-Clause
// Peers: the members of teams as they are reached: who is there, where, silent or lost. members.cpp: what is said to them; near.cpp:
// inside the service; absent.cpp: for teams that are not here yet, or no longer; silence.cpp: signs of life; watchers.cpp: who notices
// whose death; loss.cpp: what follows. Owned by the engine; on the worker's thread; blocks nobody. Whom the fabric cannot reach is lost
// with the next progress(). Internal to engine/.
#pragma once

#include "base/silence.hpp"
#include "engine/rooms/neighbours.hpp"
#include "engine/rooms/room.hpp"

#include <unordered_set>

namespace offpath::engine {

offpath_status_t obituary_of(Loss how);
Loss loss_of(int32_t obituary);

// What one member of this worker says to another.
struct NearMessage {
  wire::Message message;         // of an offer: pull_id and bytes
  std::vector<uint8_t> payload;  // requests and replies
  Location source;               // offers
  bool is_offer = false;
};

// A message for a team that is not known yet.
struct EarlyMessage {
  wire::Message message;
  std::vector<uint8_t> payload;
  size_t weight() const { return 1 + payload.size() / sizeof(wire::Message); }
};

// A service that something is awaited from.
struct Watched {
  base::Silence silence;
  bool answered = false;
};

class Imports;
class Messages;
class Sender;

class Peers final : public Room {
 public:
  Peers(Core& core, Runner& runner, const Config& config, fabric::Fabric& fabric, Neighbours& neighbours,
        Sender& sender, Messages& messages, Imports& imports, const RoomList& rooms)
      : Room(core, runner, config),
        fabric_(fabric),
        neighbours_(neighbours),
        sender_(sender),
        messages_(messages),
        imports_(imports),
        rooms_(rooms) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  // Of those that were found unreachable while sending.
  bool progress() override;

  // ---- watchers.cpp
  // Of a team's first operation.
  void say_hello(Team& team);

  // ---- members.cpp
  // `payload`: of requests and replies.
  void send(Team& team, uint32_t rank, const wire::Message& message, fabric::Bytes payload = {});
  // UINT32_MAX, and a loss to be reported, when the member cannot be reached.
  fabric::Peer peer_of(Team& team, uint32_t rank);

  // ---- near.cpp
  // A message to, or the answer to a pull of, a member that this service serves.
  void send_near(uint32_t worker, const wire::Message& message, fabric::Bytes payload);
  void offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes);
  // The next one to a member of this worker.
  void deliver_near();

  // ---- absent.cpp
  void handle_absent(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  // The member is here: what has come for it is delivered.
  void arrive(const TeamKey& key);
  void depart(const std::shared_ptr<Team>& team);
  // Of a team that was removed and has nothing left to do.
  void forget_if_unused(const Team& team);
  // Tells a member that it is without this one, if that was abandoned.
  bool say_abandoned(Team& team, uint32_t rank);
  const std::map<TeamKey, std::shared_ptr<Team>>& departed() const { return departed_; }
  // Blocks that were pushed and nobody has confirmed; not of those that are lost.
  size_t unconfirmed() const;

  // ---- silence.cpp
  void watch(uint64_t now_ns);

  // ---- loss.cpp
  void lose_peer(fabric::Peer peer);
  // By rank: does the operation still want something from that member, or that member from it?
  std::vector<uint8_t> needed_members(const Operation& operation) const;
  void fail_for_loss(Operation& operation, uint32_t rank);
  // Its own member has.
  void give_up(Team& team);
  // Tells a member that wants something of a collective that it was given up here as a service is lost. It gives it up, too: a
  // mere refusal would be a failure of its own, and as such an arrival. False: no service is lost.
  bool pass_loss_on(Team& team, uint32_t to, uint64_t number);

 private:
  void handle_hello(const wire::Message& message);
  void handle_gone(const wire::Message& message);
  std::vector<uint32_t> watched_by(const Team& team) const;
  bool greet(Team& team, uint32_t rank);
  void say_gone(Team& team, uint32_t to, uint32_t rank, Loss how);
  void lose_service(const wire::TeamId& id, uint32_t rank, Loss how);
  void note_gone(const std::vector<uint8_t>& address);
  void keep_early(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  void forget_departed(const TeamKey& key);
  void say_lost(Team& team, uint32_t rank, int32_t obituary);
  std::set<fabric::Peer> awaited_peers() const;
  bool is_given_up(const Team& team, uint32_t rank) const {
    return team.peer(rank) >= 0 && given_up_.contains(static_cast<fabric::Peer>(team.peer(rank)));
  }
  void say_address(fabric::Peer peer, wire::Kind kind, uint64_t waited_ns);
  void handle_sign_of_life(const wire::Message& message, fabric::Bytes address);
  void handle_lost(const wire::Message& message);
  using Members = std::vector<std::pair<std::shared_ptr<Team>, uint32_t>>;
  void tell_loss(const Team& team, uint32_t rank, Loss how);
  void lose_member(Team& team, uint32_t rank, Loss how);
  void lose_members(const Members& lost, Loss how);
  // Asks a service that was lost whether it lives, where the fabric reaches it again.
  void seek(const std::vector<uint8_t>& address);
  void note_found(const std::vector<uint8_t>& address);

  fabric::Fabric& fabric_;
  Neighbours& neighbours_;
  Sender& sender_;
  Messages& messages_;
  Imports& imports_;
  const RoomList& rooms_;
  std::deque<NearMessage> near_;  // to members that this worker serves
  std::map<TeamKey, std::vector<EarlyMessage>> early_;
  std::deque<TeamKey> early_order_;
  size_t early_weight_ = 0;
  std::map<TeamKey, std::shared_ptr<Team>> departed_;  // removed, or without a client
  std::deque<TeamKey> departed_order_;
  size_t departed_weight_ = 0;
  std::unordered_set<fabric::Peer> given_up_;            // for their silence
  std::vector<uint8_t> own_address_;                     // on the fabric
  std::map<fabric::Peer, std::vector<uint8_t>> sought_;  // lost before: their addresses
  std::map<fabric::Peer, Watched> watched_;              // something is awaited from them
  std::map<fabric::Peer, base::OwnWaits> own_waits_;     // as they were told of them
  Members unreachable_;                                  // found while sending, told from progress()
};

}  // namespace offpath::engine
