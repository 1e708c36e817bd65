// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/perform.hpp"

#include <cstring>

namespace offpath::ops::onesided {
namespace {

using base::Status;
using memory::Memory;

// What lies at the target after the operation; `old` lay there before. Null: it stays.
const uint8_t* combine(const Wanted& wanted, const std::vector<uint8_t>& old, std::vector<uint8_t>& space) {
  const uint8_t* data = wanted.data.data();
  if (wanted.kind == OFFPATH_COMPARE_AND_SWAP) {
    return memcmp(old.data(), data + wanted.bytes, wanted.bytes) == 0 ? data : nullptr;
  }
  if (!sends(wanted)) return nullptr;
  if (wanted.kind == OFFPATH_PUT) return data;
  space.resize(wanted.bytes);
  kernels::combine(wanted.reduction, old.data(), data, space.data(), wanted.bytes);
  return space.data();
}

Status perform_on(const Wanted& wanted, const Memory& memory, uint64_t address, std::vector<uint8_t>& old) {
  const bool reads = fetches(wanted.kind) || (wanted.kind == OFFPATH_ACCUMULATE && sends(wanted));
  if (reads) {
    old.resize(wanted.bytes);
    if (const Status status = memory.read(old.data(), address, wanted.bytes); !status.ok()) return status;
  }
  std::vector<uint8_t> space;
  const uint8_t* result = combine(wanted, old, space);
  return result == nullptr ? Status() : memory.write(address, result, wanted.bytes);
}

}  // namespace

graph::Answer perform(const Wanted& wanted, const std::shared_ptr<Memory>& memory, uint64_t address) {
  graph::Answer answer;
  if (wanted.bytes == 0) return answer;
  if (wanted.contiguous) {
    answer.status = perform_on(wanted, *memory, address, answer.payload);
  } else {
    const auto strided = memory::make_strided(memory, address, memory::index_layout(wanted.layout));
    answer.status = perform_on(wanted, *strided, 0, answer.payload);
  }
  if (!answer.status.ok() || !fetches(wanted.kind)) answer.payload.clear();
  return answer;
}

}  // namespace offpath::ops::onesided
