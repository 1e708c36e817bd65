// SPDX-License-Identifier: BSD-3-Clause
#include "ops/layouts.hpp"
#include "ops/onesided/onesided.hpp"

namespace offpath::ops::onesided {

using base::Status;

namespace {

constexpr auto kRefused = OFFPATH_ERR_ARGUMENT;

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

bool locks(offpath_remote_kind_t kind) { return kind >= OFFPATH_LOCK_SHARED && kind <= OFFPATH_UNLOCK; }

bool accumulates(offpath_remote_kind_t kind) { return kind >= OFFPATH_ACCUMULATE && kind <= OFFPATH_COMPARE_AND_SWAP; }

bool fetches(offpath_remote_kind_t kind) {
  return kind == OFFPATH_GET || kind == OFFPATH_GET_ACCUMULATE || kind == OFFPATH_COMPARE_AND_SWAP;
}

bool sends(const Wanted& wanted) {
  return wanted.kind == OFFPATH_PUT || (accumulates(wanted.kind) && wanted.reduction.op != OFFPATH_OP_NO_OP);
}

uint64_t data_bytes(const Wanted& wanted) {
  if (!sends(wanted)) return 0;
  return wanted.kind == OFFPATH_COMPARE_AND_SWAP ? 2 * wanted.bytes : wanted.bytes;
}

bool is_short(const Wanted& wanted) {
  return wanted.bytes <= kInlineBytes || (!sends(wanted) && !fetches(wanted.kind));
}

Status check(const Wanted& wanted) {
  if (wanted.kind < OFFPATH_PUT || wanted.kind > OFFPATH_UNLOCK) {
    return Status::error(kRefused, "one-sided kind %d is not known. See offpath.h", static_cast<int>(wanted.kind));
  }
  if (wanted.bytes >= kBlockLimitBytes) {
    return Status::error(kRefused, "%llu bytes at the target are too many (the limit is 64 TiB). Split them",
                         static_cast<unsigned long long>(wanted.bytes));
  }
  if (!wanted.contiguous) {
    if (wanted.layout.ranges.size() > kMaxRanges) {
      return Status::error(kRefused, "the target's layout has %zu ranges (the limit is %u). Split the operation",
                           wanted.layout.ranges.size(), kMaxRanges);
    }
    if (const Status status = check_layout(wanted.layout); !status.ok()) return status;
  }
  if (accumulates(wanted.kind)) return check_reduction(wanted);
  if (wanted.reduction != kernels::Reduction{} ||
      (locks(wanted.kind) && (wanted.bytes > 0 || wanted.offset > 0 || !wanted.contiguous))) {
    return Status::error(kRefused, "one-sided kind %d takes no reduction, and a lock no place. Leave them 0",
                         static_cast<int>(wanted.kind));
  }
  return {};
}

}  // namespace offpath::ops::onesided
