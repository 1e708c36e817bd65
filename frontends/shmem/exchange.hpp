// SPDX-License-Identifier: BSD-3-Clause
// How the PEs tell each other plain records, by their own OpenSHMEM, in memory borrowed from the symmetric heap.
#pragma once

#include "attach/exchange.hpp"

namespace offpath::shmem {

inline constexpr const char* kNoHeap =
    "the symmetric heap has no room for the start-up (a few KiB per PE). Raise SHMEM_SYMMETRIC_HEAP_SIZE";

class HeapExchange final : public attach::Exchange {
 public:
  HeapExchange(int pe, int pe_count) : Exchange(pe, pe_count, kNoHeap) {}

 private:
  bool broadcast_bytes(void* record, size_t bytes) const override;
  bool gather_bytes(const void* record, size_t bytes, void* all) const override;
  bool gather_parts(const void* own, const Parts& parts, void* all) const override;
};

}  // namespace offpath::shmem
