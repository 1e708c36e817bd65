// SPDX-License-Identifier: BSD-3-Clause
#include "engine/carriers/chunks.hpp"

namespace offpath::engine {

Chunk* ChunkPool::take() {
  if (free_.empty()) {
    if (all_.size() >= limit_) return nullptr;
    all_.push_back(std::make_unique<Chunk>());
    all_.back()->memory.reset(new (std::align_val_t(4096)) uint8_t[chunk_bytes_]);
    all_.back()->steady = base::Steady(all_.back()->memory.get(), chunk_bytes_);
    return all_.back().get();
  }
  Chunk* chunk = free_.back();
  free_.pop_back();
  return chunk;
}

Chunk* ChunkPool::take_to_send() {
  const size_t in_use = all_.size() - free_.size();
  return in_use * 2 < limit_ ? take() : nullptr;
}

void ChunkPool::give_back(Chunk* chunk) {
  chunk->source.reset();
  free_.push_back(chunk);
}

}  // namespace offpath::engine
