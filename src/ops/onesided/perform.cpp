// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/perform.hpp"

#include <cstring>

namespace offpath::ops::onesided {

Perform::Perform(Wanted wanted, std::span<const uint8_t> data, const std::shared_ptr<memory::Port>& target, uint64_t at,
                 remote::Journal* journal)
    : wanted_(std::move(wanted)), data_(data), journal_(journal) {
  memory = target;
  address = at;
  if (!wanted_.contiguous) {
    memory = memory::make_strided(target, at, memory::index_layout(wanted_.layout));
    address = 0;
  }
  bytes = wanted_.bytes;
  replies = fetches(wanted_.kind);
  reads = replies || (wanted_.kind == OFFPATH_ACCUMULATE && sends(wanted_));
}

const uint8_t* Perform::apply(const uint8_t* old) {
  const uint8_t* data = data_.data();
  if (journal_ != nullptr && replies) journal_->note_fetched({old, bytes});
  if (wanted_.kind == OFFPATH_COMPARE_AND_SWAP) return memcmp(old, data + bytes, bytes) == 0 ? data : nullptr;
  if (!sends(wanted_)) return nullptr;
  if (wanted_.kind == OFFPATH_PUT) return data;
  space_.resize(bytes);
  kernels::combine(wanted_.reduction, old, data, space_.data(), bytes);
  return space_.data();
}

}  // namespace offpath::ops::onesided
