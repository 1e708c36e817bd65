// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/exchange.hpp"

#include "shmem/natives.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::shmem {

bool HeapExchange::broadcast_bytes(void* record, size_t bytes) const {
  const Natives& call = native();
  void* const shared = call.shmem_malloc(bytes);
  if (shared == nullptr) return false;
  memcpy(shared, record, bytes);
  call.shmem_barrier_all();
  call.shmem_ctx_getmem(native_context(kDefaultContext), record, shared, bytes, 0);
  call.shmem_free(shared);
  return true;
}

bool HeapExchange::gather_bytes(const void* record, size_t bytes, void* all) const {
  const Natives& call = native();
  const auto pes = static_cast<size_t>(size());
  const size_t stride = (bytes + 7) / 8 * 8;
  // The native collective's own words, then the record, then everybody's.
  const size_t words_bytes = SHMEM_COLLECT_SYNC_SIZE * sizeof(long);
  auto* const shared = static_cast<std::byte*>(call.shmem_malloc(words_bytes + stride * (pes + 1)));
  if (shared == nullptr) return false;
  auto* const words = reinterpret_cast<long*>(shared);
  for (size_t i = 0; i < SHMEM_COLLECT_SYNC_SIZE; ++i) words[i] = SHMEM_SYNC_VALUE;
  std::byte* const own = shared + words_bytes;
  memcpy(own, record, bytes);
  call.shmem_barrier_all();
  call.shmem_fcollect64(own + stride, own, stride / 8, 0, 0, static_cast<int>(pes), words);
  for (size_t pe = 0; pe < pes; ++pe) memcpy(static_cast<std::byte*>(all) + bytes * pe, own + stride * (pe + 1), bytes);
  call.shmem_free(shared);  // passes a barrier first: nobody's words are taken away too early
  return true;
}

bool HeapExchange::gather_parts(const void* own, const Parts& parts, void* all) const {
  const Natives& call = native();
  const int most = *std::max_element(parts.bytes.begin(), parts.bytes.end());
  void* const shared = call.shmem_malloc(static_cast<size_t>(most));
  if (shared == nullptr) return false;
  memcpy(shared, own, static_cast<size_t>(parts.bytes[static_cast<size_t>(rank())]));
  call.shmem_barrier_all();
  for (int pe = 0; pe < size(); ++pe) {
    const auto bytes = static_cast<size_t>(parts.bytes[static_cast<size_t>(pe)]);
    auto* const to = static_cast<std::byte*>(all) + parts.begins[static_cast<size_t>(pe)];
    if (bytes > 0) call.shmem_ctx_getmem(native_context(kDefaultContext), to, shared, bytes, pe);
  }
  call.shmem_free(shared);
  return true;
}

}  // namespace offpath::shmem
