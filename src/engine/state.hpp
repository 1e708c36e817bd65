// SPDX-License-Identifier: BSD-3-Clause
// The core of an engine and its runner: clients, teams and operations (records.hpp); which step may start, and what is over. The
// rest is in rooms (rooms.def), each with a header of its own, in carriers/ and in coding/. Owned by the Engine; on the worker's
// thread; blocks nobody. Internal to engine/.
//   engine    clients and teams             messages  who takes what comes
//   steps     runs graphs                   accesses  goes on with what ports do later
//   standing  what operations wait for
//
// Nothing runs or ends an operation from inside anything else: steps that may start and operations that are over are
// queued, as are answers to requests and messages to members of this worker, and settle() works the queues off at the end of
// each call from outside. So chains of steps need no stack, and a reference to an operation stays good until settle().
#pragma once

#include "engine/carriers/sender.hpp"
#include "engine/coding/compression.hpp"
#include "engine/records.hpp"
#include "engine/room.hpp"

namespace offpath::engine {

#define OFFPATH_ROOM(type, name) class type;
#include "engine/rooms.def"
class Local;

struct State {
  State(const Config& config, fabric::Fabric& fabric, Neighbours& neighbours, Observer& observer);

  // engine.cpp
  Operation& add_operation(const std::shared_ptr<Team>& team, OperationKey key, Part part, Graph graph,
                           uint64_t context);
  void start(Operation& operation);
  void release_first_steps(Operation& operation);
  // A failure is the next one's failure too: it would work on garbage.
  void release_next_in_order(const Operation& operation);
  // Forgets a team that was removed and has nothing left to do.
  void forget_if_unused(const Team& team);

  // steps.cpp
  void start_step(Operation& operation, uint32_t step);
  // `bytes`: what it has moved.
  void finish_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);
  void note_moved(Operation& operation, uint64_t bytes);
  void note_coded(Operation& operation, const Coded& coded);
  void release_step(Operation& operation, uint32_t step);
  void end_if_done(Operation& operation);
  void end(Operation& operation, const base::Status& status);
  void settle();
  void retire(Operation& operation);
  // Forgets pulls, streams and local work of an operation that ends early; user memory is not touched any more.
  void release(Operation& operation);

  // messages.cpp
  void receive(fabric::Bytes header, fabric::Bytes payload);
  void receive_batch(fabric::Bytes entries);
  void receive_one(const wire::Message& message, fabric::Bytes payload);
  Room& room_at(RoomIndex index) const { return *rooms[static_cast<size_t>(index)]; }
  // To its room; from the fabric or from a member here.
  void dispatch(const wire::Message& message, fabric::Bytes payload);
  bool is_to_come(const Team& team, const OperationKey& key) const;
  void refuse_message(const char* why);
  std::shared_ptr<Team> find_team(const wire::TeamId& id, uint32_t rank);

  // accesses.cpp
  memory::Ticket next_ticket() { return {&completions, next_id++}; }
  // Goes on with `then(operation, status)`, now or when the port has done it. Null: the operation is over, there is
  // only to be given back what the access has used.
  template <typename Then>
  void when_done(Operation& operation, const memory::Outcome& outcome, memory::Ticket ticket, Then&& then);
  // The same for what is no operation's: `then(status)`.
  template <typename Then>
  void when_done(const memory::Outcome& outcome, memory::Ticket ticket, Then&& then);
  bool reap();
  void end_access(uint64_t ticket, const base::Status& status);

  // near.cpp
  void deliver_near();

  // standing.cpp
  // What is known of a member that neither sends nor takes.
  Waits look_for(const Operation& operation, uint32_t rank) const;

  const Config config;
  fabric::Fabric& fabric;
  Neighbours& neighbours;
  Observer& observer;
  ChunkPool chunks{config.chunk_bytes, config.pool_chunks};
  // Of files: longer, as each goes to a thread and back, and apart, as they may be away for as long as a disk takes.
  ChunkPool file_chunks{config.file_chunk_bytes, config.file_chunks};
  Sender sender{fabric, chunks};
  Compression compression{config.now_ns, config.coder, fabric};
  const std::unique_ptr<Doer> own_doer = config.doer == nullptr ? make_doer(config.scratch_cache_bytes) : nullptr;
  Doer& doer = config.doer == nullptr ? *own_doer : *config.doer;
  std::unordered_map<ClientId, std::shared_ptr<memory::Port>> clients;
  std::map<TeamKey, std::shared_ptr<Team>> teams;
  std::unordered_map<TeamHandle, std::shared_ptr<Team>> team_by_handle;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations;
  std::deque<std::pair<Operation*, uint32_t>> ready;  // steps that may start
  std::deque<Operation*> ended;
  std::deque<NearMessage> near;  // to members that this worker serves
  std::deque<std::pair<RequestId, Answer>> answers;
  memory::Completions completions{config.wake};
  std::unordered_map<uint64_t, Access> accesses;  // by ticket
  uint64_t next_id = 1;
  uint64_t refused = 0;
  Traffic traffic;
  const std::shared_ptr<Local> local;
#define OFFPATH_ROOM(type, name) const std::shared_ptr<type> name;
#include "engine/rooms.def"
  const std::array<Room*, static_cast<size_t>(RoomIndex::count)> rooms;
};

template <typename Then>
void State::when_done(Operation& operation, const memory::Outcome& outcome, memory::Ticket ticket, Then&& then) {
  if (!outcome.is_later()) return then(&operation, outcome.status());
  ++operation.accesses;
  accesses.emplace(ticket.number, Access{operation.id, std::forward<Then>(then)});
}

template <typename Then>
void State::when_done(const memory::Outcome& outcome, memory::Ticket ticket, Then&& then) {
  if (!outcome.is_later()) return then(outcome.status());
  accesses.emplace(ticket.number, Access{0, [then = std::forward<Then>(then)](Operation*, const base::Status& status) {
                                           then(status);
                                         }});
}

}  // namespace offpath::engine
