// SPDX-License-Identifier: BSD-3-Clause
#include "base/cores.hpp"

#include <gtest/gtest.h>

namespace offpath::base {
namespace {

TEST(Cores, AreNamedByRanges) {
  for (const char* text : {"0", "2,3", "4-7", "0-2,5,9-9", "1023", "3,2,2", "1024", "0-4000000000"}) {
    EXPECT_TRUE(cores_in(text).has_value()) << text;
  }
  for (const char* text : {"0-3,6", "5", "0-1023"}) EXPECT_EQ(ranges_of(*cores_in(text)), text);
  for (const char* text :
       {"", "two", "1;2", "-1", "3-", "3-2", "1,", ",1", "1 ", " 1", "1--2", "99999999999999999999", "0x1", "+1"}) {
    EXPECT_FALSE(cores_in(text).has_value()) << text;
  }
  EXPECT_EQ(ranges_of(*cores_in("5,4000")), "5");
  EXPECT_EQ(ranges_of(*cores_in("4000")), "");
}

}  // namespace
}  // namespace offpath::base
