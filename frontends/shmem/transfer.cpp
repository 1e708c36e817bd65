// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/transfer.hpp"

#include "shmem/waiting.hpp"

#include <array>
#include <cstring>
#include <string>

namespace offpath::shmem {
namespace {

void count(std::atomic<uint64_t>& counter, uint64_t by = 1) { counter.fetch_add(by, std::memory_order_relaxed); }

// Data bytes; 0 for none or more than an address space holds, and for strides that OpenSHMEM does not allow.
uint64_t data_bytes(const Elements& elements) {
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements.count, elements.bytes, &bytes)) return 0;
  return elements.symmetric_stride < 1 || elements.local_stride < 1 ? 0 : bytes;
}

// From the first to the last symmetric byte; UINT64_MAX if that is more than an address space holds.
uint64_t symmetric_extent(const Elements& elements) {
  uint64_t extent = 0;
  if (__builtin_mul_overflow(elements.count - 1, static_cast<uint64_t>(elements.symmetric_stride), &extent) ||
      __builtin_mul_overflow(extent, elements.bytes, &extent) ||
      __builtin_add_overflow(extent, elements.bytes, &extent)) {
    return UINT64_MAX;
  }
  return extent;
}

// The segment that serves a call, or null for a native one.
Segment* serving(Family family, const void* symmetric, uint64_t extent, int pe) {
  if (extent == 0 || !job.serves_memory()) return nullptr;
  Segment* const segment = pe < 0 || pe >= job.pe_count() ? nullptr : job.find(symmetric, extent);
  if (segment == nullptr) count(job.counters().of(family).native_count);
  return segment;
}

// The program may read again and again until another PE has written, which may need the native library here first. So that
// gets a step now and then; a read by the service takes as long as many that are copies.
constexpr uint32_t kCopied = 1, kServed = 64;
void note_read(uint32_t weight) {
  constexpr uint32_t kStep = 1024;  // some 100 us
  thread_local uint32_t reads = 0;
  if ((reads += weight) < kStep) return;
  reads = 0;
  progress();
}

// Posts an operation and, if asked to, waits until it is done.
void execute(Family family, const Segment& segment, const offpath_remote_t& remote, bool wait) {
  offpath_op_t* op = nullptr;
  offpath_op_t** const handle = wait ? &op : nullptr;
  offpath_status_t status = offpath_remote(segment.window(), &remote, handle);
  if (status == OFFPATH_ERR_NO_MEMORY) {  // what is under way gives its room back
    job.quiet();
    status = offpath_remote(segment.window(), &remote, handle);
  }
  if (op != nullptr) {
    note_read(kServed);
    status = offpath_op_wait(op, UINT64_MAX);
    offpath_op_free(op);
  }
  if (status != OFFPATH_OK) {
    return job.fail(status, std::string(family_name(family)) + " on memory of PE " + std::to_string(remote.target));
  }
  count(job.counters().of(family).offloaded_count);
  count(job.counters().offloaded_bytes, remote.target_bytes);
}

offpath_remote_t remote_of(offpath_remote_kind_t kind, const Segment& segment, const void* symmetric, uint64_t bytes,
                           int pe) {
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = kind;
  remote.target = static_cast<uint32_t>(pe);
  remote.target_offset = segment.offset_of(symmetric);
  remote.target_bytes = bytes;
  return remote;
}

offpath_block_t block_of(const void* address, uint64_t bytes) {
  offpath_block_t block{};
  block.address = address;
  block.bytes = bytes;
  return block;
}

// The layouts of both sides, for an operation with strides; single elements need none.
class Strides {
 public:
  explicit Strides(const Elements& elements)
      : element_{0, elements.bytes},
        layouts_{{{elements.bytes, extent(elements, elements.symmetric_stride), &element_, 1},
                  {elements.bytes, extent(elements, elements.local_stride), &element_, 1}}},
        symmetric_(elements.count > 1 && elements.symmetric_stride != 1 ? 1 : 0),
        local_(elements.count > 1 && elements.local_stride != 1 ? 2 : 0) {}
  Strides(const Strides&) = delete;
  Strides& operator=(const Strides&) = delete;

  void apply(offpath_remote_t* remote, offpath_block_t* block) const {
    remote->target_layout = symmetric_;
    block->layout = local_;
    if (symmetric_ + local_ == 0) return;
    remote->layouts = layouts_.data();
    remote->layouts_count = static_cast<uint32_t>(layouts_.size());
  }
  bool local_contiguous() const { return local_ == 0; }

 private:
  static int64_t extent(const Elements& elements, ptrdiff_t stride) {
    int64_t bytes = 0;
    return __builtin_mul_overflow(static_cast<int64_t>(elements.bytes), stride, &bytes) ? INT64_MAX : bytes;
  }

  offpath_range_t element_;
  std::array<offpath_layout_t, 2> layouts_;
  uint32_t symmetric_;
  uint32_t local_;
};

bool contiguous(const Elements& elements) {
  return elements.count == 1 || (elements.symmetric_stride == 1 && elements.local_stride == 1);
}

}  // namespace

bool put(void* symmetric, const void* local, const Elements& elements, int pe, Until until) {
  const uint64_t bytes = data_bytes(elements);
  Segment* const segment = serving(Family::put, symmetric, bytes == 0 ? 0 : symmetric_extent(elements), pe);
  if (segment == nullptr) return false;
  if (std::byte* const mapped = segment->mapped(symmetric, pe); mapped != nullptr && contiguous(elements)) {
    memmove(mapped, local, bytes);
    count(job.counters().of(Family::put).mapped_count);
    return true;
  }
  offpath_remote_t remote = remote_of(OFFPATH_PUT, *segment, symmetric, bytes, pe);
  remote.send = block_of(local, bytes);
  const Strides strides(elements);
  strides.apply(&remote, &remote.send);
  const bool copied = bytes <= OFFPATH_REMOTE_INLINE_BYTES && strides.local_contiguous();
  execute(Family::put, *segment, remote, until == Until::reusable && !copied);
  return true;
}

bool get(void* local, const void* symmetric, const Elements& elements, int pe, Until until) {
  const uint64_t bytes = data_bytes(elements);
  Segment* const segment = serving(Family::get, symmetric, bytes == 0 ? 0 : symmetric_extent(elements), pe);
  if (segment == nullptr) return false;
  if (const std::byte* const mapped = segment->mapped(symmetric, pe); mapped != nullptr && contiguous(elements)) {
    memmove(local, mapped, bytes);
    count(job.counters().of(Family::get).mapped_count);
    note_read(kCopied);
    return true;
  }
  offpath_remote_t remote = remote_of(OFFPATH_GET, *segment, symmetric, bytes, pe);
  remote.result = block_of(local, bytes);
  const Strides strides(elements);
  strides.apply(&remote, &remote.result);
  execute(Family::get, *segment, remote, until == Until::reusable);
  return true;
}

namespace {

offpath_remote_t atomic_of(offpath_remote_kind_t kind, const Segment& segment, const void* symmetric,
                           const Atomic& atomic, int pe) {
  offpath_remote_t remote = remote_of(kind, segment, symmetric, atomic.bytes, pe);
  remote.element = atomic.bytes == 4 ? OFFPATH_ELEMENT_U32 : OFFPATH_ELEMENT_U64;
  return remote;
}

}  // namespace

// Values are words whose low bytes count; on the little endian machines Offpath runs on these come first in memory.
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

bool atomic_update(void* symmetric, const Atomic& atomic, int pe) {
  Segment* const segment = serving(Family::atomic, symmetric, atomic.bytes, pe);
  if (segment == nullptr) return false;
  offpath_remote_t remote = atomic_of(OFFPATH_ACCUMULATE, *segment, symmetric, atomic, pe);
  remote.op = atomic.op;
  remote.send = block_of(&atomic.value, atomic.bytes);
  execute(Family::atomic, *segment, remote, false);
  return true;
}

bool atomic_fetch(const void* symmetric, const Atomic& atomic, int pe, uint64_t* old) {
  Segment* const segment = serving(Family::atomic, symmetric, atomic.bytes, pe);
  if (segment == nullptr) return false;
  offpath_remote_t remote = atomic_of(OFFPATH_GET_ACCUMULATE, *segment, symmetric, atomic, pe);
  remote.op = atomic.op;
  remote.send = block_of(&atomic.value, atomic.bytes);
  remote.result = block_of(old, atomic.bytes);
  execute(Family::atomic, *segment, remote, true);
  return true;
}

bool atomic_compare_swap(void* symmetric, const Atomic& atomic, uint64_t compare, int pe, uint64_t* old) {
  Segment* const segment = serving(Family::atomic, symmetric, atomic.bytes, pe);
  if (segment == nullptr) return false;
  std::array<std::byte, 2 * sizeof(uint64_t)> both;
  memcpy(both.data(), &atomic.value, atomic.bytes);
  memcpy(both.data() + atomic.bytes, &compare, atomic.bytes);
  offpath_remote_t remote = atomic_of(OFFPATH_COMPARE_AND_SWAP, *segment, symmetric, atomic, pe);
  remote.send = block_of(both.data(), 2 * uint64_t{atomic.bytes});
  remote.result = block_of(old, atomic.bytes);
  execute(Family::atomic, *segment, remote, true);
  return true;
}

}  // namespace offpath::shmem
