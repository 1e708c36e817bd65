// SPDX-License-Identifier: BSD-3-Clause
// Peers: the members of teams as they are reached: who is there, where, silent or lost. members.cpp: what is said to them; near.cpp:
// inside the service; absent.cpp: for teams that are not here yet, or no longer; silence.cpp: signs of life; loss.cpp: the dead. Owned
// by the engine; on the worker's thread; blocks nobody. Whom the fabric cannot reach is lost with the next progress(). Internal
// to engine/.
#pragma once

#include "engine/state.hpp"

namespace offpath::engine {

class Peers final : public Room {
 public:
  explicit Peers(State& state) : s_(state) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  // Of those that were found unreachable while sending.
  bool progress() override;

  // ---- members.cpp
  void say_hello(Team& team);
  // `payload`: of requests and replies.
  void send(Team& team, uint32_t rank, const wire::Message& message, fabric::Bytes payload = {});
  // UINT32_MAX, and a loss to be reported, when the member cannot be reached.
  fabric::Peer peer_of(Team& team, uint32_t rank);

  // ---- near.cpp
  // A message to, or the answer to a pull of, a member that this service serves.
  void send_near(uint32_t worker, const wire::Message& message, fabric::Bytes payload);
  void offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes);

  // ---- absent.cpp
  void handle_absent(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  // The member is here: what has come for it is delivered.
  void arrive(const TeamKey& key);
  void depart(const std::shared_ptr<Team>& team);
  // Tells a member that it is without this one, if that was abandoned.
  bool say_abandoned(Team& team, uint32_t rank);
  const std::map<TeamKey, std::shared_ptr<Team>>& departed() const { return departed_; }

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
  void keep_early(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  void forget_departed(const TeamKey& key);
  void say_lost(Team& team, uint32_t rank, int32_t obituary);
  std::set<fabric::Peer> awaited_peers() const;
  void say_address(fabric::Peer peer, wire::Kind kind, uint64_t waited_ns);
  void handle_sign_of_life(const wire::Message& message, fabric::Bytes address);
  void handle_lost(const wire::Message& message);
  void tell_loss(const Team& team, uint32_t rank, Loss how);
  void lose_member(Team& team, uint32_t rank, Loss how);
  // Asks a service that was lost whether it lives, where the fabric reaches it again.
  void seek(const std::vector<uint8_t>& address);
  void note_found(const std::vector<uint8_t>& address);

  State& s_;
  std::map<TeamKey, std::vector<EarlyMessage>> early_;
  std::deque<TeamKey> early_order_;
  size_t early_weight_ = 0;
  std::map<TeamKey, std::shared_ptr<Team>> departed_;  // removed, or without a client
  std::deque<TeamKey> departed_order_;
  size_t departed_weight_ = 0;
  std::unordered_set<fabric::Peer> given_up_;                            // for their silence
  std::vector<uint8_t> own_address_;                                     // on the fabric
  std::map<fabric::Peer, std::vector<uint8_t>> sought_;                  // lost before: their addresses
  std::map<fabric::Peer, Watched> watched_;                              // something is awaited from them
  std::map<fabric::Peer, base::OwnWaits> own_waits_;                     // as they were told of them
  std::vector<std::pair<std::shared_ptr<Team>, uint32_t>> unreachable_;  // found while sending, told from progress()
};

}  // namespace offpath::engine
