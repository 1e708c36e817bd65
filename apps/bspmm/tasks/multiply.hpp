// SPDX-License-Identifier: BSD-3-Clause
// What a task of a product is told besides its tiles.
#pragma once

namespace bspmm {

struct MultiplyArgument {
  int tile;   // rows and columns
  int first;  // C holds nothing yet
};

constexpr const char* kMultiplySignature = "bspmm_multiply(in double a[], in double b[], inout double c[]) 1";
enum MultiplyRange { kA, kB, kC, kMultiplyRanges };

}  // namespace bspmm
