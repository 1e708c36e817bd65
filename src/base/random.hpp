// SPDX-License-Identifier: BSD-3-Clause
// Random numbers that an outsider cannot guess.
#pragma once

#include <cstddef>
#include <cstdint>

namespace offpath::base {

void fill_random(void* data, size_t bytes);
uint64_t random_u64();

}  // namespace offpath::base
