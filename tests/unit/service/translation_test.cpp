// SPDX-License-Identifier: BSD-3-Clause
// Records of clients that write anything.
#include "service/translation.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

TEST(TranslationOfPrograms, RefusesWhatIsNoEnumerator) {
  session::ProgramArguments good;
  good.head.rows = 8;
  good.before = {{OFFPATH_SCALAR_COPY, 0, 0, 0}};
  good.after = {{OFFPATH_SCALAR_SQRT, 0, 0, 0}};
  good.statements = {{OFFPATH_DOT, 0, 0, 0}};
  ASSERT_TRUE(translate(good).ok());
  for (const uint32_t wild : {0U, 8U, 255U, UINT32_MAX}) {
    auto before = good, after = good, statement = good;
    before.before[0].op = after.after[0].op = statement.statements[0].kind = wild;
    for (const auto& bad : {before, after, statement}) {
      EXPECT_EQ(translate(bad).status().code(), OFFPATH_ERR_ARGUMENT) << wild;
    }
  }
}

}  // namespace
}  // namespace offpath::service
