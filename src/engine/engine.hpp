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
// told. When a member's process is lost those that still need it end, always with OFFPATH_ERR_PEER_LOST.
#pragma once

#include "base/standing.hpp"
#include "base/starvation.hpp"
#include "engine/coding/coder.hpp"
#include "engine/doer.hpp"
#include "engine/roster.hpp"
#include "fabric/fabric.hpp"
#include "graph/request.hpp"
#include "kernels/codecs/choice.hpp"
#include "kernels/helpers.hpp"
#include "memory/port.hpp"
#include "wire/message.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace offpath::engine {

using base::Standing;
using base::Waits;
using graph::Answer;
using graph::ClientId;
using graph::Graph;
using graph::Request;
using graph::RequestId;
using graph::Responder;
using TeamHandle = uint64_t;

struct TeamSpec {
  wire::TeamId id;
  uint32_t rank = 0;
  Roster members;
  ClientId client = 0;
  uint64_t context = 0;                       // given back in the Observer's calls
  std::optional<codecs::Wish> compress = {};  // what this member sends in it; nothing: as Config says
};

// How a member was lost. 0 is none.
enum class Loss : uint8_t {
  service = 1,    // its service, or the way there
  silence = 2,    // its service, or the way there: no sign of life while something was awaited from it
  process = 3,    // itself
  connection = 4  // told after `service`: that one lives, and is reached again
};

// What the owner of the clients learns. `team` and `operation` are the contexts it gave. Of requests it learns the end,
// and of long ones the first byte.
class Observer {
 public:
  virtual ~Observer() = default;
  // Once at most per operation, before any of its on_step that moved bytes: the first of its bytes has come here, or
  // begins to leave this node. Not for what goes inside a request or its answer.
  virtual void on_first_byte(ClientId, uint64_t /*operation*/) {}
  // Once per step: pulls with the peer they came from, copies and reductions with the own rank. Failed ones and those
  // left out moved 0 bytes.
  virtual void on_step(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  // Once per export that was taken; 0 bytes if it was refused.
  virtual void on_served(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  // A chunk left compressed.
  virtual void on_coded(ClientId, const Coded&) {}
  // What compression would have left of a part of one (codecs::Wish::samples).
  virtual void on_sampled(ClientId, const codecs::Chooser::Sampled&) {}
  // Once at most, before on_finished: the result is complete, but others may not have theirs (graph::Ends).
  virtual void on_arrived(ClientId, uint64_t /*operation*/) {}
  virtual void on_finished(ClientId client, uint64_t operation, base::Status status) = 0;
  virtual void on_member_lost(ClientId client, uint64_t team, uint32_t rank, Loss how) = 0;
};

// The other workers of this service. Nothing here calls back into an engine.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  // The payload (requests and replies) is the caller's again on return. Messages to one worker keep their order.
  virtual void send(uint32_t worker, const wire::Message& message, fabric::Bytes payload) = 0;
  // Answers a pull of a member served there (Engine::on_neighbour_offer): it may read `bytes` bytes at `address` of
  // `memory` until it says done, and keeps the memory meanwhile (what is_over() says counts). With 0 bytes the memory is null.
  virtual void offer(uint32_t worker, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
                     uint64_t bytes) = 0;
};

// Bytes of blocks so far.
struct Traffic {
  uint64_t sent_bytes = 0;  // over the fabric
  uint64_t received_bytes = 0;
  uint64_t local_bytes = 0;  // copied, reduced or computed on inside the node
  uint64_t coded_bytes = 0;  // of the bytes sent, those that went compressed
  uint64_t wire_bytes = 0;   // what they were then
  uint64_t lossy_bytes = 0;  // of the coded ones, those of which something was lost
};

struct Config {
  size_t chunk_bytes = 56 << 10;             // one segment of UCX over TCP: nothing to assemble; at least 64
  uint32_t chunks_in_flight = 16;            // per stream
  uint32_t pool_chunks = 128;                // per worker, both directions together; at least 2
  size_t file_chunk_bytes = 1 << 20;         // the same between memory and files
  uint32_t file_chunks = 16;                 // per worker
  size_t batched_bytes = 4 << 10;            // longest piece of a block that shares a fabric message with others
  size_t pushed_bytes = wire::kPushedBytes;  // longest block that is sent unasked; 0: none. The same everywhere
  size_t parked_limit = 1 << 16;             // messages that came before the operation or team they are for
  uint32_t arrivals_radix = 8;               // of the rounds of arrivals; at least 2. The same everywhere
  uint64_t silence_ns = 0;                   // see watch(); 0: for ever
  uint64_t scratch_cache_bytes = 64 << 20;   // memory for partial results that is kept for the next operation
  uint32_t worker = UINT32_MAX;              // the own index among the workers of this service
  std::function<void()> wake = [] {};        // called by ports that end an access later, from any thread
  kernels::Helpers* helpers = nullptr;       // who helps with computations; outlives the engine. Null: nobody
  Doer* doer = nullptr;                      // who reduces; outlives the engine. Null: the kernels, here
  codecs::Wish compress;                     // what streams to other nodes are coded with
  Coder* coder = nullptr;                    // who does that; outlives the engine. Null: the codecs, here
  uint32_t multicast_chains = 0;             // that send at the same time; the team's first node decides. 0: chains.hpp
  uint64_t multicast_rate = 0;               // bytes per second that links take; 0: what devices say
  uint32_t multicast_groups = 16;            // joined at most, as switches have small tables
  std::function<uint64_t()> own_waits_ns = base::own_waits_ns;  // of the thread that runs it
  std::function<uint64_t()> now_ns;  // a clock, for what pays, and for multicast. Null: the system's
};

struct State;

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
  std::unique_ptr<State> state_;
};

}  // namespace offpath::engine
