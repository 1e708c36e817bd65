// SPDX-License-Identifier: BSD-3-Clause
// Tags of what we send on communicators of our own. MPI promises tags up to 32767.
#pragma once

#include "mpi/calls/side.hpp"

#include <cstdint>

namespace offpath::mpi {

inline constexpr int kWordTag = 1;

// Of the blocks of one share of an operation. Both ends start the messages of a share in the order of the operations,
// and those of an operation in the order of its blocks, so messages of one tag meet in order; but those of different
// shares may pass each other, and after an operation failed on one rank only, the next one's must not be taken for its.
inline int block_tag(uint64_t sequence, Share share) {
  constexpr uint64_t kOperations = 8192;
  return kWordTag + 1 + static_cast<int>(sequence % kOperations) * 2 + (share == Share::service ? 1 : 0);
}

// Of what is said about one loss of a lane, or one service that leaves: nobody takes it for what is said about the next one.
inline constexpr int kTagsOfALoss = 4;
inline int loss_tag(uint64_t loss, int which) {
  constexpr int kFirst = 16386;  // behind all blocks
  constexpr uint64_t kLosses = 4000;
  return kFirst + static_cast<int>(loss % kLosses) * kTagsOfALoss + which;
}

}  // namespace offpath::mpi
