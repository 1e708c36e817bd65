// SPDX-License-Identifier: BSD-3-Clause
// What a short one-sided operation does to the target's memory, at once.
#pragma once

#include "ops/onesided/onesided.hpp"

namespace offpath::ops::onesided {

// A reply, with what was fetched. Precondition: decode() has checked `wanted`, it is short and no lock, and its place,
// with the first element at `address`, is allowed.
graph::Answer perform(const Wanted& wanted, const std::shared_ptr<memory::Memory>& memory, uint64_t address);

}  // namespace offpath::ops::onesided
