// SPDX-License-Identifier: BSD-3-Clause
// The way of allreduce by parts where the parts of so many nodes are short.
#pragma once

#include "ops/collectives/segments.hpp"

namespace offpath::ops {

void expand_allreduce_halving(const Expansion& expansion);

}  // namespace offpath::ops
