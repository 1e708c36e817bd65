// SPDX-License-Identifier: BSD-3-Clause
// What an Engine knows. Internal to engine/: engine.cpp posts and ends operations, messages.cpp answers messages,
// transfers.cpp moves bytes, loss.cpp deals with the dead.
#pragma once

#include "engine/engine.hpp"

#include <deque>
#include <map>
#include <new>
#include <unordered_map>
#include <unordered_set>

namespace offpath::engine {

struct Team;

enum class ExportState : uint8_t { open, requested, sending, resolved };

struct ExportProgress {
  ExportState state = ExportState::open;
  uint64_t pull_id = 0;
};

struct Operation {
  uint64_t id = 0;
  std::shared_ptr<Team> team;
  uint64_t sequence = 0;
  uint64_t context = 0;
  Graph graph;
  std::vector<uint8_t> step_done;
  std::vector<ExportProgress> exports;
  std::unordered_set<uint32_t> begun;  // members that sent us anything for it
  uint32_t steps_left = 0;
  uint32_t exports_left = 0;
  base::Status status;

  // The first failure is the one that is reported.
  void note_failure(const base::Status& failure) {
    if (status.ok()) status = failure;
  }
};

struct ClientState {
  std::shared_ptr<memory::Memory> memory;
};

struct Team {
  TeamSpec spec;
  TeamHandle handle = 0;
  std::shared_ptr<memory::Memory> memory;
  std::vector<int64_t> peers;  // fabric peer by rank, -1: not connected yet
  std::vector<uint8_t> lost;   // by rank
  bool dead = false;           // a member's process is gone
  bool said_hello = false;
  bool removed = false;
  uint64_t next_sequence = 0;
  std::map<uint64_t, Operation*> operations;      // unfinished, by sequence
  std::multimap<uint64_t, wire::Message> parked;  // pulls by the sequence they ask for
};

// One block under way to a remote receiver.
struct Stream {
  uint64_t id = 0;
  Operation* operation = nullptr;  // null: given up, only waits for its chunks in flight
  std::shared_ptr<memory::Memory> memory;
  uint32_t export_index = 0;
  fabric::Peer peer = 0;
  uint64_t pull_id = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
  uint32_t in_flight = 0;
};

// One block awaited, from a remote sender or from a neighbour.
struct Pull {
  Operation* operation = nullptr;
  uint32_t step = 0;
  uint64_t received = 0;  // placed, or being fetched
  uint64_t placed = 0;
  uint64_t total = UINT64_MAX;  // known with the first chunk
};

// A copy this engine makes itself, chunk by chunk: own block, or a neighbour's block.
struct LocalCopy {
  uint64_t operation_id = 0;
  uint32_t step = 0;
  uint64_t pull_id = 0;  // 0: a copy step
  std::shared_ptr<memory::Memory> source_memory;
  uint64_t source = 0;
  uint64_t target = 0;
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
  uint64_t stream = 0;   // outgoing
  uint64_t pull_id = 0;  // incoming
  uint64_t offset = 0;
  uint64_t bytes = 0;
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

  // engine.cpp
  void start_step(Operation& operation, uint32_t step);
  void finish_step(Operation& operation, uint32_t step);
  void resolve_export(Operation& operation, uint32_t index);
  void finish_if_done(Operation& operation);
  void end_operation(Operation& operation, base::Status status);
  // Forgets pulls, streams and copies of the operation; user memory is not touched any more.
  void release(Operation& operation);
  void say_hello(Team& team);

  // messages.cpp
  void handle(const wire::Message& message);
  void handle_pull(const wire::Message& message);
  void serve(Operation& operation, const wire::Message& message);
  void hand_out(Operation& operation, uint32_t export_index);
  void handle_offer(const wire::Message& message);
  void handle_done(const wire::Message& message);
  void handle_fail(const wire::Message& message);
  void handle_lost(const wire::Message& message);
  void send(Team& team, uint32_t rank, const wire::Message& message);
  // Tells member `rank` that its pull will not be served, and why.
  void refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status);
  // UINT32_MAX, and a loss to be reported, when the member cannot be reached.
  fabric::Peer peer_of(Team& team, uint32_t rank);
  std::shared_ptr<Team> find_team(const wire::TeamId& id, uint32_t rank);

  // transfers.cpp
  bool move_streams();
  bool send_chunk(Stream& stream);
  bool move_local_copies();
  bool place_announced();
  Pull* check_data(const wire::Message& message, size_t bytes);
  void chunk_arrived(uint64_t pull_id, uint64_t bytes);
  enum class Fault { target, source };  // whose memory a failed copy could not access
  void finish_pull(uint64_t pull_id, base::Status status, Fault fault = Fault::target);
  Chunk* take_chunk();
  void give_back(Chunk* chunk);

  // loss.cpp
  void lose_member(Team& team, uint32_t rank, bool process);
  bool needs(const Operation& operation, uint32_t rank) const;
  void fail_for_loss(Operation& operation, uint32_t rank);
  bool report_unreachable();

  Config config;
  fabric::Fabric& fabric;
  Neighbours& neighbours;
  Observer& observer;
  std::unordered_map<ClientId, ClientState> clients;
  std::map<TeamKey, std::shared_ptr<Team>> teams;
  std::unordered_map<TeamHandle, std::shared_ptr<Team>> team_by_handle;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations;
  std::unordered_map<uint64_t, Pull> pulls;
  std::map<uint64_t, Stream> streams;
  std::deque<LocalCopy> copies;
  std::vector<std::unique_ptr<Chunk>> chunks;
  std::vector<Chunk*> free_chunks;
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
