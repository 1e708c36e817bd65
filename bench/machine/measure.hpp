// SPDX-License-Identifier: BSD-3-Clause
// Measurements of one machine. Speeds in bytes (or operations) per nanosecond, times in nanoseconds. All run on the
// calling thread's core and take some ten milliseconds.
#pragma once

#include <optional>

#include "../../apps/kit/clocks.hpp"

namespace machine {

using Spread = kit::Spread<double>;

Spread copy_speed();                       // memcpy of blocks larger than the caches
Spread reduce_speed();                     // sum of doubles, bytes of one operand
Spread compute_speed();                    // a chain of multiply-adds, each two operations
std::optional<Spread> cma_speed();         // process_vm_readv from a child; nothing where that is not allowed
Spread wake_time(int other_core);          // half a round trip of two threads that sleep on a futex
Spread shared_copy_speed(int other_core);  // memcpy while the other core does the same

}  // namespace machine
