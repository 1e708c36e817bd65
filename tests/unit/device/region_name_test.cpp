// SPDX-License-Identifier: BSD-3-Clause
#include "device/region_name.hpp"

#include <gtest/gtest.h>

namespace offpath::device {
namespace {

TEST(RegionName, FunctionAndLine) {
  EXPECT_EQ(region_name("__omp_offloading_fe01_28a3f_main_l12"), "line 12 of main");
  EXPECT_EQ(region_name("__omp_offloading_fe01_28a3f_do_it_l_l7"), "line 7 of do_it_l");
  EXPECT_EQ(region_name("__omp_offloading_fe01_28a3f__ZN1a1bEi_l100"), "line 100 of a::b(int)");
}

TEST(RegionName, OtherNamesStay) {
  for (const char* name : {"table", "", "__omp_offloading_", "__omp_offloading_1_2", "__omp_offloading_1_2_x"}) {
    EXPECT_EQ(region_name(name), name);
  }
}

TEST(SourceLine, BrokenImagesHaveNone) {
  const std::vector<uint8_t> garbage(100, 0x7f);
  EXPECT_EQ(source_line(garbage, 0x10), "");
  EXPECT_EQ(source_line({}, 0), "");
}

}  // namespace
}  // namespace offpath::device
