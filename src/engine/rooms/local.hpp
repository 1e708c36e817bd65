// SPDX-License-Identifier: BSD-3-Clause
// Local: what a worker does inside the node, chunk by chunk: copies, reductions, computations, and blocks of neighbours. Owned by
// the engine; on the worker's thread; blocks nobody, but for a block of a computation. Failures are a step's. Internal to engine/.
#pragma once

#include "engine/carriers/chunks.hpp"
#include "engine/rooms/room.hpp"

namespace offpath::engine {

using graph::Compute;

// What went wrong with a block, as its sender must know.
enum class Cause : uint8_t { complete, target_fault, source_fault, refused };

// What this engine does itself, chunk by chunk: a copy, a reduction, a computation, or a neighbour's block that is
// pulled.
struct LocalWork {
  Operation* operation = nullptr;
  uint32_t step = 0;
  uint64_t pull_id = 0;  // 0: a step of its own
  Location source = {};
  Location operand = {};  // reductions only
  Location target = {};
  std::vector<Location> arrays = {};       // of a computation, whose bytes and offset are blocks
  std::shared_ptr<kernels::Run> run = {};  // likewise
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of what is to be done next
  uint64_t done = 0;
  uint32_t in_flight = 0;  // chunks
  bool stalled = false;    // not queued, because so many are in flight
  bool in_file = false;    // one end of it
  base::Status status = {};
  Cause cause = Cause::complete;
};

class Imports;

class Local final : public Room {
 public:
  Local(Core& core, Runner& runner, const Config& config, ChunkPool& chunks, Imports& imports)
      : Room(core, runner, config), chunks_(chunks), imports_(imports) {}

  void begin_step(Operation& operation, uint32_t step);
  // A block that lies near.
  void add(LocalWork&& work) { waiting_.push_back(std::make_shared<LocalWork>(std::move(work))); }
  // Moves a chunk's worth; what is sent leaves before. False: there was nothing to be done.
  bool work();
  void forget(Operation& operation) override;

 private:
  using Work = std::shared_ptr<LocalWork>;
  struct Operands;
  ChunkPool& chunks_of(const LocalWork& work) { return work.in_file ? file_chunks_ : chunks_; }
  // Begins with the next chunk; the bytes of it, 0: none is free for it.
  uint64_t begin_copy(const Work& work);
  uint64_t begin_reduce(const Work& work);
  void write_copy(Operation& operation, const Work& work, uint64_t offset, uint64_t bytes, const uint8_t* data,
                  Chunk* chunk);
  void read_operands(Operation& operation, const Work& work, const Operands& operands);
  void combine(Operation& operation, const Work& work, const Operands& operands);
  void give_back(const Operands& operands);
  void end_chunk(Operation& operation, const Work& work, uint64_t bytes, const base::Status& status, Cause cause);
  void end_work(Operation& operation, const LocalWork& work);
  // One block, if helpers have left any; returns the bytes of memory that it and they have touched since the last one.
  static uint64_t compute_block(LocalWork& work);
  base::Status prepare_compute(const Operation& operation, const Compute& compute, LocalWork& work) const;

  ChunkPool& chunks_;
  // Of files: longer, as each goes to a thread and back, and apart, as they may be away for as long as a disk takes.
  ChunkPool file_chunks_{config_.file_chunk_bytes, config_.file_chunks};
  Imports& imports_;
  std::deque<Work> waiting_;
};

}  // namespace offpath::engine
