// SPDX-License-Identifier: BSD-3-Clause
#include "remote/wanted.hpp"

#include "base/limits.hpp"
#include "base/words.hpp"

namespace offpath::remote {

using base::Status;

namespace {

constexpr auto kRefused = OFFPATH_ERR_ARGUMENT;

constexpr uint8_t kSends = 1, kFetches = 2, kCombines = 4, kHasElement = 8, kLocks = 16, kSignals = 32;

constexpr uint8_t kDoes[] = {
#define OFFPATH_REMOTE_KIND(NAME, number, text, does, about) does,
#include <offpath/words/remote_kinds.def>
};
bool does(offpath_remote_kind_t kind, uint8_t what) { return (kDoes[kind - OFFPATH_PUT] & what) != 0; }

Status check_reduction(const Wanted& wanted) {
  const kernels::Reduction& reduction = wanted.reduction;
  const bool swaps = wanted.kind == OFFPATH_COMPARE_AND_SWAP;
  const uint64_t element = kernels::element_bytes(reduction.element);
  const bool defined = swaps ? reduction.op == OFFPATH_OP_NONE : kernels::supported(reduction);
  if (element == 0 || !defined) {
    return Status::error(kRefused, "operator %d is not defined on element type %d. See offpath.h",
                         static_cast<int>(reduction.op), static_cast<int>(reduction.element));
  }
  if (wanted.bytes % element == 0 && (!swaps || wanted.bytes == element)) return {};
  return Status::error(kRefused,
                       "%llu bytes to accumulate (compare and swap takes one element of %llu bytes, the others "
                       "whole ones). Check the length",
                       static_cast<unsigned long long>(wanted.bytes), static_cast<unsigned long long>(element));
}

}  // namespace

const char* name_of(offpath_remote_kind_t kind) { return base::text_of(kind); }
bool locks(offpath_remote_kind_t kind) { return does(kind, kLocks); }
bool signals(offpath_remote_kind_t kind) { return does(kind, kSignals); }
bool accumulates(offpath_remote_kind_t kind) { return does(kind, kHasElement); }
bool combines(offpath_remote_kind_t kind) { return does(kind, kCombines); }
bool fetches(offpath_remote_kind_t kind) { return does(kind, kFetches); }
bool may_send(offpath_remote_kind_t kind) { return does(kind, kSends); }

bool sends(const Wanted& wanted) {
  return may_send(wanted.kind) && !(combines(wanted.kind) && wanted.reduction.op == OFFPATH_OP_NO_OP);
}

uint64_t data_bytes(const Wanted& wanted) {
  if (!sends(wanted)) return 0;
  if (signals(wanted.kind)) return wanted.bytes - kSignalBytes;
  return wanted.kind == OFFPATH_COMPARE_AND_SWAP ? 2 * wanted.bytes : wanted.bytes;
}

bool is_short(const Wanted& wanted) {
  if (signals(wanted.kind)) return false;  // one write has no order within
  return wanted.bytes <= kInlineBytes || (!sends(wanted) && !fetches(wanted.kind));
}

Status check(const Wanted& wanted) {
  if (!base::is_word<offpath_remote_kind_t>(wanted.kind)) {
    return Status::error(kRefused, "one-sided kind %d is not known. See offpath.h", static_cast<int>(wanted.kind));
  }
  if (wanted.bytes >= base::kBlockLimitBytes) {
    return Status::error(kRefused, "%llu bytes at the target are too many (the limit is 64 TiB). Split them",
                         static_cast<unsigned long long>(wanted.bytes));
  }
  if (!wanted.contiguous) {
    const memory::Layout& layout = wanted.layout;
    if (layout.ranges.size() > kMaxRanges) {
      return Status::error(kRefused, "the target's layout has %zu ranges (the limit is %u). Split the operation",
                           layout.ranges.size(), kMaxRanges);
    }
    if (const Status status = memory::check_layout(layout); !status.ok()) return status;
  }
  if (accumulates(wanted.kind)) return check_reduction(wanted);
  if (signals(wanted.kind) && (!wanted.contiguous || wanted.bytes <= kSignalBytes)) {
    return Status::error(kRefused, "%llu bytes at the target have no room for data and a signal, or a layout. Put more",
                         static_cast<unsigned long long>(wanted.bytes));
  }
  const bool moves = !locks(wanted.kind);
  const bool no_reduction = wanted.reduction == kernels::Reduction{} ||
                            (moves && wanted.reduction.op == OFFPATH_OP_NONE && is_number(wanted.reduction.element));
  if (!no_reduction || (locks(wanted.kind) && (wanted.bytes > 0 || wanted.offset > 0 || !wanted.contiguous))) {
    return Status::error(kRefused, "one-sided kind %d takes no reduction, and a lock no place. Leave them 0",
                         static_cast<int>(wanted.kind));
  }
  return {};
}

}  // namespace offpath::remote
