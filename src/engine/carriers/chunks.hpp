// SPDX-License-Identifier: BSD-3-Clause
// Chunks: the buffers through which blocks of a worker pass, a bounded number for both directions. The pool owns
// them; on the worker's thread.
#pragma once

#include "base/steady.hpp"
#include "memory/port.hpp"
#include "wire/message.hpp"

#include <memory>
#include <new>
#include <vector>

namespace offpath::engine {

// Page aligned: a copy whose target lies a few bytes after its source, modulo 4 KiB, stumbles over its own stores (4K
// aliasing) and takes up to five times as long (1.4 against 7 GB/s for process_vm_readv on Zen 3). User buffers start
// at a page or 16 bytes after one, so a page-aligned target is safe and a malloc'ed one is not.
struct PageAlignedDelete {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t(4096)); }
};

class Carrier;

// A chunk buffer of the pool and what is going on in it.
struct Chunk {
  std::unique_ptr<uint8_t[], PageAlignedDelete> memory;
  base::Steady steady;                   // it is
  Carrier* carrier = nullptr;            // outgoing, of a block
  uint64_t transfer = 0;                 // what the carrier knows it by
  std::shared_ptr<memory::Port> source;  // outgoing, sent from where it lies; then
  uint64_t access = 0;                   // its operation does not end before that
  wire::Message message;                 // incoming: what it is the payload of
  uint64_t bytes = 0;
};

class ChunkPool {
 public:
  ChunkPool(size_t chunk_bytes, uint32_t limit) : chunk_bytes_(chunk_bytes), limit_(limit) {}

  // Null: none is free.
  Chunk* take();
  // Half of the pool is kept for what comes in: senders waiting for each other's buffers would never end.
  Chunk* take_to_send();
  void give_back(Chunk* chunk);
  size_t chunk_bytes() const { return chunk_bytes_; }

 private:
  const size_t chunk_bytes_;
  const uint32_t limit_;
  std::vector<std::unique_ptr<Chunk>> all_;
  std::vector<Chunk*> free_;
};

}  // namespace offpath::engine
