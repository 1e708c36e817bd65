// SPDX-License-Identifier: BSD-3-Clause
// What an Engine knows. Internal to engine/: engine.cpp knows clients and teams, steps.cpp runs graphs, messages.cpp
// answers messages, batch.cpp sends them, transfers.cpp moves bytes over the fabric and local.cpp inside the node,
// loss.cpp deals with the dead.
//
// Nothing runs or ends an operation from inside anything else: steps that may start and operations that are over are
// queued, and settle() works the queues off at the end of each call from outside. So chains of steps need no stack, and
// a reference to an operation stays good until settle().
#pragma once

#include "engine/engine.hpp"
#include "memory/scratch.hpp"

#include <deque>
#include <map>
#include <new>
#include <unordered_map>
#include <unordered_set>

namespace offpath::engine {

struct Team;

// A Place, resolved. The memory stays as long as this.
struct Location {
  std::shared_ptr<memory::Memory> memory;
  uint64_t address = 0;
};

struct StepProgress {
  bool done = false;
  bool failed = false;               // or after one that did: what it would produce is garbage
  uint32_t first_waiting = kNoStep;  // of the exports that were asked for and wait for this step
};

enum class ExportState : uint8_t { open, requested, sending, resolved };

struct ExportProgress {
  ExportState state = ExportState::open;
  uint64_t pull_id = 0;
  uint64_t limit = 0;               // bytes the peer takes
  uint64_t stream = 0;              // while it is being sent
  uint32_t next_waiting = kNoStep;  // another export that waits for the same step
};

struct Operation {
  uint64_t id = 0;
  std::shared_ptr<Team> team;
  uint64_t sequence = 0;
  uint64_t context = 0;
  Graph graph;
  std::vector<StepProgress> steps;
  std::vector<ExportProgress> exports;
  std::vector<std::shared_ptr<const memory::LayoutIndex>> layouts;
  std::shared_ptr<memory::Memory> scratch;  // null: none needed, or none to be had
  std::unordered_set<uint32_t> begun;       // members that sent us anything for it
  uint32_t steps_left = 0;
  uint32_t exports_left = 0;
  bool over = false;  // only waits for settle()
  base::Status status;

  // The first failure is the one that is reported.
  void note_failure(const base::Status& failure) {
    if (status.ok()) status = failure;
  }
  base::Status resolve(const Place& place, Location& out) const;
};

struct Team {
  TeamSpec spec;
  TeamHandle handle = 0;
  std::shared_ptr<memory::Memory> memory;
  std::vector<int64_t> peers;  // fabric peer by rank, -1: not connected yet
  std::vector<uint8_t> lost;   // by rank
  bool broken = false;         // a member is lost
  bool dead = false;           // a member's process is gone
  bool said_hello = false;
  bool removed = false;
  uint64_t next_sequence = 0;
  std::map<uint64_t, Operation*> operations;      // unfinished, by sequence
  std::multimap<uint64_t, wire::Message> parked;  // pulls by the sequence they ask for
};

// One block under way to a remote receiver, until its last chunk is handed to the fabric.
struct Stream {
  Operation* operation = nullptr;
  uint32_t export_index = 0;
  fabric::Peer peer = 0;
  uint64_t pull_id = 0;
  Location source;
  uint64_t bytes = 0;
  uint64_t offset = 0;
  uint32_t in_flight = 0;
};

// One block awaited, from a remote sender or from a neighbour.
struct Pull {
  Operation* operation = nullptr;
  uint32_t step = 0;
  Location target = {};
  uint64_t limit = 0;     // bytes we take
  uint64_t received = 0;  // placed, or being fetched
  uint64_t placed = 0;
  uint64_t total = UINT64_MAX;  // over the fabric; known with the first chunk
};

// What this engine does itself, chunk by chunk: a copy, a reduction, or a neighbour's block that is pulled.
struct LocalWork {
  Operation* operation = nullptr;
  uint32_t step = 0;
  uint64_t pull_id = 0;  // 0: a step of its own
  Location source = {};
  Location operand = {};  // reductions only
  Location target = {};
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

// Page aligned: a copy whose target lies a few bytes after its source, modulo 4 KiB, stumbles over its own stores (4K
// aliasing) and takes up to five times as long (1.4 against 7 GB/s for process_vm_readv on Zen 3). User buffers start
// at a page or 16 bytes after one, so a page-aligned target is safe and a malloc'ed one is not.
struct PageAlignedDelete {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t(4096)); }
};

// A chunk buffer of the pool and what is going on in it.
struct Chunk {
  std::unique_ptr<uint8_t[], PageAlignedDelete> memory;
  uint64_t stream = 0;                     // outgoing; 0: a batch
  std::shared_ptr<memory::Memory> source;  // outgoing, sent from where it lies
  uint64_t pull_id = 0;                    // incoming; 0: a batch
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

// Messages that leave for one fabric peer with the next flush.
struct Outbox {
  Chunk* chunk = nullptr;
  size_t used = 0;
  size_t last = 0;  // where the last entry begins
  size_t entries = 0;
};

struct WaitingAnnouncement {
  wire::Message message;
  size_t bytes;
  fabric::Announced handle;
};

struct TeamKey {
  wire::TeamId id;
  uint32_t rank;
  auto operator<=>(const TeamKey&) const = default;
};

struct Engine::State {
  State(const Config& c, fabric::Fabric& f, Neighbours& n, Observer& o)
      : config(c), fabric(f), neighbours(n), observer(o) {}

  // steps.cpp
  void start_step(Operation& operation, uint32_t step);
  void start_pull(Operation& operation, uint32_t step);
  // `bytes`: what it has moved.
  void finish_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);
  void resolve_export(Operation& operation, uint32_t index, uint64_t bytes);
  void release_step(Operation& operation, uint32_t step);
  void end_if_done(Operation& operation);
  void end(Operation& operation, const base::Status& status);
  void settle();
  void retire(Operation& operation);
  // Forgets pulls, streams and local work of an operation that ends early; user memory is not touched any more.
  void release(const Operation& operation);

  // messages.cpp
  void receive(fabric::Bytes header, fabric::Bytes payload);
  void receive_batch(fabric::Bytes entries);
  void receive_one(const wire::Message& message, fabric::Bytes payload);
  void handle(const wire::Message& message);
  void handle_pull(const wire::Message& message);
  void keep_early(const wire::Message& message);
  void serve(Operation& operation, const wire::Message& message);
  void hand_out(Operation& operation, uint32_t export_index);
  void handle_done(const wire::Message& message);
  void handle_fail(const wire::Message& message);
  void handle_lost(const wire::Message& message);
  // Tells member `rank` that its pull will not be served, and why; that there is nothing for it.
  void refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status);
  void answer_empty(Team& team, uint32_t rank, uint64_t pull_id);
  void refuse_message(const char* why);
  std::shared_ptr<Team> find_team(const wire::TeamId& id, uint32_t rank);

  // batch.cpp
  void say_hello(Team& team);
  void send(Team& team, uint32_t rank, const wire::Message& message);
  // UINT32_MAX, and a loss to be reported, when the member cannot be reached.
  fabric::Peer peer_of(Team& team, uint32_t rank);
  // Where to write the payload of an entry that then leaves with the next flush. Null: it must go by itself.
  uint8_t* add_entry(fabric::Peer peer, const wire::Message& message, size_t payload_bytes);
  // Takes the entry added last back.
  void drop_entry(fabric::Peer peer);
  void flush(fabric::Peer peer);
  bool flush_all();

  // transfers.cpp
  bool move_streams();
  bool send_chunk(uint64_t id);
  void fail_stream(uint64_t id, const base::Status& status);
  bool place_announced();
  Pull* check_data(const wire::Message& message, size_t bytes);
  void place(uint64_t pull_id, uint64_t offset, fabric::Bytes data);
  enum class Cause { complete, target_fault, source_fault, refused };
  void finish_pull(uint64_t pull_id, const base::Status& status, Cause cause);
  Chunk* take_chunk();
  Chunk* take_chunk_to_send();
  void give_back(Chunk* chunk);

  // local.cpp
  bool move_local();
  // The bytes moved; 0: no chunk is free.
  uint64_t copy_chunk(const LocalWork& work, base::Status& status, Cause& cause);
  uint64_t reduce_chunk(const LocalWork& work, base::Status& status);

  // loss.cpp
  void lose_member(Team& team, uint32_t rank, bool process);
  // By rank: does the operation still want something from that member, or that member from it?
  std::vector<uint8_t> needed_members(const Operation& operation) const;
  void fail_for_loss(Operation& operation, uint32_t rank);
  bool report_unreachable();

  const Config config;
  fabric::Fabric& fabric;
  Neighbours& neighbours;
  Observer& observer;
  std::shared_ptr<memory::ScratchPool> scratch = std::make_shared<memory::ScratchPool>(config.scratch_cache_bytes);
  std::unordered_map<ClientId, std::shared_ptr<memory::Memory>> clients;
  std::map<TeamKey, std::shared_ptr<Team>> teams;
  std::unordered_map<TeamHandle, std::shared_ptr<Team>> team_by_handle;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations;
  std::deque<std::pair<Operation*, uint32_t>> ready;  // steps that may start
  std::deque<Operation*> ended;
  std::unordered_map<uint64_t, Pull> pulls;
  std::map<uint64_t, Stream> streams;
  std::deque<LocalWork> local;
  std::vector<std::unique_ptr<Chunk>> chunks;
  std::vector<Chunk*> free_chunks;
  std::vector<Outbox> outboxes;  // by fabric peer
  std::vector<fabric::Peer> unsent;
  std::deque<WaitingAnnouncement> announcements;
  std::map<TeamKey, std::vector<wire::Message>> early;  // pulls for teams not known yet
  std::deque<TeamKey> early_order;
  size_t early_count = 0;
  std::unordered_set<fabric::Peer> lost_peers;
  std::vector<std::pair<std::shared_ptr<Team>, uint32_t>> unreachable;  // found while sending, told from progress()
  uint64_t last_stream_served = 0;
  uint64_t next_id = 1;
  uint64_t refused = 0;
  uint64_t moved_bytes = 0;
};

}  // namespace offpath::engine
