// SPDX-License-Identifier: BSD-3-Clause
// Local: what a worker does inside the node, chunk by chunk: copies, reductions, computations, and blocks of neighbours. Owned by
// the engine; on the worker's thread; blocks nobody, but for a block of a computation. Failures are a step's. Internal to engine/.
#pragma once

#include "engine/state.hpp"

namespace offpath::engine {

class Local {
 public:
  explicit Local(State& state) : s_(state) {}

  // A step that is no pull and no multicast, or a block that lies near.
  void begin(Operation& operation, uint32_t step);
  void add(LocalWork&& work) { waiting_.push_back(std::make_shared<LocalWork>(std::move(work))); }
  // Moves a chunk's worth. False: there was nothing to be done.
  bool progress();
  void forget(const Operation& operation);

 private:
  using Work = std::shared_ptr<LocalWork>;
  struct Operands;
  ChunkPool& chunks_of(const LocalWork& work) const { return work.in_file ? s_.file_chunks : s_.chunks; }
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

  State& s_;
  std::deque<Work> waiting_;
};

}  // namespace offpath::engine
