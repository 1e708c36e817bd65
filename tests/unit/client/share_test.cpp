// SPDX-License-Identifier: BSD-3-Clause
#include "client/share.hpp"

#include <gtest/gtest.h>

namespace offpath::client {
namespace {

constexpr uint64_t kGiB = uint64_t{1} << 30;

TEST(Share, OfAllClientsFitsIntoAProcess) {
  for (const uint32_t sessions : {1U, 2U, 64U, 192U, 512U, 4096U}) {
    for (const uint64_t machine : {4 * kGiB, 768 * kGiB, 24576 * kGiB}) {
      const uint64_t share = share_of(machine, sessions);
      EXPECT_LE(sessions * (share + session::kSegmentBytes), (uint64_t{1} << 47) - kGiB) << sessions;
      EXPECT_EQ(share % session::kHeaderBytes, 0U);
    }
  }
}

TEST(Share, IsTheWholeMachineWhereThatFits) {
  EXPECT_EQ(share_of(768 * kGiB, 0), 768 * kGiB);
  EXPECT_EQ(share_of(768 * kGiB, 64), 768 * kGiB);
  EXPECT_EQ(share_of(0, 64), 0U);
}

}  // namespace
}  // namespace offpath::client
