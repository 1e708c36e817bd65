// SPDX-License-Identifier: BSD-3-Clause
// Engine: runs the graphs of the clients of one worker. Single threaded: every call and every callback happens on the
// worker's thread.
//
// Life of an operation: post() -> [on_pulled | on_served]* -> on_finished, exactly once. After on_finished neither the
// client's buffers nor the context are touched again.
// Fairness: progress() gives each stream and each local copy one chunk in turn.
// Loss: when a member's service is lost, unfinished operations that still need that member end with
// OFFPATH_ERR_NOT_STARTED if nothing for them ever came from it, else with OFFPATH_ERR_PEER_LOST; members that wait
// for us in that operation are told. When a member's process is lost the status is always OFFPATH_ERR_PEER_LOST.
#pragma once

#include "engine/graph.hpp"
#include "fabric/fabric.hpp"
#include "memory/memory.hpp"
#include "wire/message.hpp"

#include <memory>
#include <string>

namespace offpath::engine {

using ClientId = uint64_t;  // unique in a service, never used again
using TeamHandle = uint64_t;

// Where a member of a team is served.
struct Member {
  bool local = false;  // by this service: then `worker`, else `address`
  uint32_t worker = 0;
  std::vector<uint8_t> address;  // of the worker on the fabric
};

struct TeamSpec {
  wire::TeamId id;
  uint32_t rank = 0;
  std::vector<Member> members;
  ClientId client = 0;
  uint64_t context = 0;  // given back in the Observer's calls
};

// What the owner of the clients learns. `team` and `operation` are the contexts it gave.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_pulled(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  virtual void on_served(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  virtual void on_finished(ClientId client, uint64_t operation, base::Status status) = 0;
  virtual void on_member_lost(ClientId client, uint64_t team, uint32_t rank) = 0;
};

// The other workers of this service.
class Neighbours {
 public:
  virtual ~Neighbours() = default;
  virtual void send(uint32_t worker, const wire::Message& message) = 0;
  // Any worker's client; null when it is gone.
  virtual std::shared_ptr<memory::Memory> memory_of(ClientId client) = 0;
};

struct Config {
  size_t chunk_bytes = 56 << 10;   // one segment of UCX over TCP: nothing to assemble
  uint32_t chunks_in_flight = 16;  // per stream
  uint32_t pool_chunks = 128;      // per worker, both directions together
  size_t parked_limit = 1 << 16;   // pulls that came before the operation they ask
};

class Engine : public fabric::Receiver {
 public:
  // The fabric must be silenced (set_receiver(nullptr)) or gone before the engine goes.
  Engine(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer);
  ~Engine() override;

  void add_client(ClientId client, std::shared_ptr<memory::Memory> memory);
  // Abandons its operations silently (no on_finished) and tells the other members of its teams.
  void remove_client(ClientId client);

  base::Result<TeamHandle> add_team(TeamSpec spec);
  // The handle becomes invalid; unfinished operations go on and keep the team alive.
  void remove_team(TeamHandle team);
  // Operations of a team are posted with sequence 0, 1, 2, ...
  void post(TeamHandle team, uint64_t sequence, Graph graph, uint64_t context);

  // Delivers from the fabric, then moves one chunk of everything. Returns whether anything happened.
  bool progress();
  // Whether at least this much of some block is still to be sent or received over the fabric.
  bool expects(uint64_t bytes) const;
  // Bytes of blocks sent and received over the fabric so far.
  uint64_t moved_bytes() const;
  // A message from another worker of this service.
  void on_neighbour_message(const wire::Message& message);

  // Receiver
  void on_message(fabric::Bytes header, fabric::Bytes payload) override;
  void on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) override;
  void on_fetched(uint64_t context, bool success) override;
  void on_sent(uint64_t context, bool success) override;
  void on_peer_lost(fabric::Peer peer) override;

  // Messages refused so far (malformed, unknown, out of bounds).
  uint64_t refused_count() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace offpath::engine
