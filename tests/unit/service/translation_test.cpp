// SPDX-License-Identifier: BSD-3-Clause
// Records of clients that write anything.
#include "../remote/body.hpp"
#include "../session/client_segment.hpp"
#include "service/translation.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

using session::RemoteArguments;

RemoteArguments a_put(uint64_t window) {
  remote::testing::Body body;
  body.window = window;
  body.offset = 16;
  body.bytes = 8;
  body.contiguous = false;
  body.layout = {8, 16, {{-4, 4}, {4, 4}}};
  body.data = {1, 2, 3, 4, 5, 6, 7, 8};
  RemoteArguments out = session::testing::some_remote();
  out.wanted = encode(body);
  return out;
}

TEST(TranslationOfRemotes, SaysTheSame) {
  const RemoteArguments arguments = a_put(9);
  const auto remote = translate(arguments, 9);
  ASSERT_TRUE(remote.ok()) << remote.status().text();
  EXPECT_EQ(remote->target, 1U);
  EXPECT_EQ(remote->body, arguments.wanted);
  EXPECT_TRUE(remote->has_data);
  EXPECT_EQ(remote->wanted.window, 9U);
  EXPECT_EQ(remote->wanted.kind, OFFPATH_PUT);
  EXPECT_EQ(remote->wanted.offset, 16U);
  ASSERT_EQ(remote->wanted.layout.ranges.size(), 2U);
  EXPECT_EQ(remote->send, (graph::Place{0x1000, 0, 1}));
  ASSERT_EQ(remote->layouts.size(), 2U);
  EXPECT_EQ(remote->layouts[1].ranges[0].offset, -4);
  EXPECT_TRUE(check(remote.value(), 2).ok());
}

TEST(TranslationOfRemotes, RefusesAnotherWindowAndBytesThatAreNoOperation) {
  EXPECT_EQ(translate(a_put(8), 9).status().code(), OFFPATH_ERR_ARGUMENT);
  RemoteArguments arguments = a_put(9);
  arguments.wanted.pop_back();
  EXPECT_EQ(translate(arguments, 9).status().code(), OFFPATH_ERR_ARGUMENT);
  arguments.wanted.resize(arguments.wanted.size() - 7);  // the data lies with the client
  ASSERT_TRUE(translate(arguments, 9).ok());
  EXPECT_FALSE(translate(arguments, 9)->has_data);
}

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
