// SPDX-License-Identifier: BSD-3-Clause
// Engine: runs the graphs of the clients of one worker. Single threaded: every call and every callback happens on the
// worker's thread.
//
// Life of an operation: post() -> on_first_byte, at most once -> [on_step | on_served]* -> on_finished, exactly once.
// After that neither the client's buffers nor the context are touched again.
// Failure: the first one is the operation's status. What is ordered after a failed step is not done: copies and
// reductions are left out, pulls take nothing, exports are refused with the status. Everything else goes on, so an
// operation ends although a part of it failed, and nobody waits for ever or gets garbage.
// Fairness: progress() gives each stream one chunk, and local work a chunk's worth in turn.
// Batching: what is said to other services leaves at the end of progress(), several small messages to one worker as
// one. Whoever calls anything else here calls progress() before it sleeps.
// Silence: watch() asks services that something is awaited from for a sign of life; one that gives none is lost.
// Loss: when a member's service is lost, all unfinished operations of the team end, with OFFPATH_ERR_NOT_STARTED if
// nothing for them ever came from it, else with OFFPATH_ERR_PEER_LOST; members that wait for us in that operation are
// told, and where it is gone for good all are, each by some others (rooms/watchers.cpp). When a member's process is lost
// those that still need it end, always with OFFPATH_ERR_PEER_LOST.
#pragma once

#include "engine/coding/coder.hpp"
#include "engine/core/config.hpp"
#include "engine/core/doer.hpp"
#include "engine/core/observer.hpp"
#include "engine/core/team_spec.hpp"
#include "engine/rooms/neighbours.hpp"
#include "fabric/fabric.hpp"
#include "graph/request.hpp"
#include "kernels/helpers.hpp"

#include <memory>

namespace offpath::engine {

struct Parts;

class Engine : public fabric::Receiver {
 public:
  // The fabric must be silenced (set_receiver(nullptr)) or gone before the engine goes.
  Engine(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer);
  ~Engine() override;

  void add_client(ClientId client, std::shared_ptr<memory::Port> memory);
  // Abandons its operations and what it was asked silently (no on_finished, no on_answered) and tells the other members
  // of its teams: that its process is gone, or that nothing serves it any more.
  void remove_client(ClientId client, Loss how = Loss::process);

  base::Result<TeamHandle> add_team(TeamSpec spec);
  // The member does without what is under way, which ends; to the others it is as if its process were gone.
  void give_up_team(TeamHandle team);
  // The handle becomes invalid; unfinished operations go on and keep the team alive.
  void remove_team(TeamHandle team);
  // Operations of a team are posted with ascending sequences; a member leaves out those that it has no part in.
  // spoilt: it fails with that: nothing of it is done here, and what others want of it is refused.
  void post(TeamHandle team, uint64_t sequence, Graph graph, uint64_t context, const base::Status& spoilt = {});

  // Posts a request; Observer::on_finished tells when graph and answer are both done. Not in the sequence of post().
  // A refused answer or one of another length is the operation's failure. Loss of the target: OFFPATH_ERR_PEER_LOST.
  void post_request(TeamHandle team, Request request, uint64_t context);
  // Who answers; before the first request can come. Without one all are refused with OFFPATH_ERR_RANGE.
  void set_responder(Responder* responder);
  // Answers a request that was put off, with a reply or a graph, in the next progress() at the latest. Unknown ids
  // (requester lost) are ignored.
  void answer(RequestId request, Answer answer);

  // Delivers from the fabric, moves one chunk of everything, sends what is to be sent. Returns whether anything
  // happened; if not, nothing will before the next message or call.
  bool progress();
  // How long progress() has nothing to do but for what comes; UINT64_MAX: for ever.
  uint64_t wait_ns();
  // How long what comes may wait in the system, as at the rate that was agreed on it is not worth a look before. 0: not known.
  uint64_t rest_ns() const;
  // Whether at least this much of blocks under way is still to be sent, or to be received, over the fabric.
  bool expects(uint64_t bytes) const;
  const Traffic& traffic() const;
  // Bytes of long blocks that are asked for at once, as segments were lost where several sent; 0: nothing is bounded.
  uint64_t window() const;
  // Bytes of blocks sent and received over the fabric so far.
  uint64_t moved_bytes() const { return traffic().sent_bytes + traffic().received_bytes; }
  // Short blocks were taken here and their senders not told, because that could wait for other messages. Whoever sleeps
  // meanwhile calls tell_senders() after some milliseconds.
  bool senders_wait() const;
  void tell_senders();
  // Blocks sent unasked that nobody has confirmed; not of those members that are lost.
  size_t unconfirmed() const;
  // Whether an operation or a request is under way: then watch() is to be called now and then (Config::silence_ns,
  // base::Silence::interval_ns). What it gives up is lost with the next progress(). Looks at all that is under way.
  bool awaits() const;
  void watch(uint64_t now_ns);
  // What holds an operation of post() up. Looks at all blocks under way: for a person, not for every operation.
  Standing standing(TeamHandle team, uint64_t sequence) const;
  // From another worker of this service.
  void on_neighbour_message(const wire::Message& message, fabric::Bytes payload);
  void on_neighbour_offer(uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address, uint64_t bytes);

  // Receiver
  void on_message(fabric::Bytes header, fabric::Bytes payload) override;
  void on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) override;
  void on_fetched(uint64_t context, bool success) override;
  void on_sent(uint64_t context, bool success) override;
  void on_peer_lost(fabric::Peer peer) override;

  // Messages refused so far (malformed, unknown, out of bounds).
  uint64_t refused_count() const;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace offpath::engine
