// SPDX-License-Identifier: BSD-3-Clause
// C against a dense reference.
#pragma once

#include <cstdint>

#include "pattern.hpp"
#include "store.hpp"

namespace bspmm {

// The largest error of any element of C on any rank, as a part of what rounding alone may cause: 1 or less is right.
//
// Each rank makes the reference of its own tiles of C, by plain loops over whole rows of A and columns of B, zero tiles
// included. In any order of summation n products are off by no more than n u sum |a b| to first order (u: unit
// roundoff; Higham, Accuracy and Stability of Numerical Algorithms, 3.1); two such sums differ by twice that.
// Collective.
double largest_error(const Pattern& pattern, int tile, std::uint64_t seed, const Store& store);

}  // namespace bspmm
