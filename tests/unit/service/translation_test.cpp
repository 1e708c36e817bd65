// SPDX-License-Identifier: BSD-3-Clause
// Records of clients that write anything.
#include "../session/client_segment.hpp"
#include "service/translation.hpp"

#include <gtest/gtest.h>

namespace offpath::service {
namespace {

using session::RemoteArguments;

offpath_status_t code(RemoteArguments arguments) { return translate(std::move(arguments), 9).status().code(); }

TEST(TranslationOfRemotes, SaysTheSame) {
  const RemoteArguments arguments = session::testing::some_remote();
  const auto remote = translate(arguments, 9);
  ASSERT_TRUE(remote.ok()) << remote.status().text();
  EXPECT_EQ(remote->target, 1U);
  EXPECT_EQ(remote->wanted.window, 9U);
  EXPECT_EQ(remote->wanted.kind, OFFPATH_PUT);
  EXPECT_EQ(remote->wanted.offset, 16U);
  EXPECT_EQ(remote->wanted.bytes, 8U);
  EXPECT_FALSE(remote->wanted.contiguous);
  EXPECT_EQ(remote->wanted.layout.size_bytes, 8U);
  EXPECT_EQ(remote->wanted.layout.extent_bytes, 16);
  ASSERT_EQ(remote->wanted.layout.ranges.size(), 2U);
  EXPECT_EQ(remote->wanted.layout.ranges[0].offset, -4);
  EXPECT_EQ(remote->wanted.data, arguments.data);
  EXPECT_EQ(remote->send, graph::client_place(0x1000));
  EXPECT_TRUE(check(remote.value(), 2).ok());
}

TEST(TranslationOfRemotes, RefusesWhatIsNoEnumerator) {
  for (const uint32_t wild : {0U, 9U, 255U, UINT32_MAX}) {
    RemoteArguments arguments = session::testing::some_remote();
    arguments.head.kind = wild;
    EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  }
  for (const uint32_t wild : {23U, 255U, 257U, UINT32_MAX}) {
    RemoteArguments arguments = session::testing::some_remote();
    arguments.head.op = wild;
    EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
    arguments.head.op = 0;
    arguments.head.element = wild;
    EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  }
}

TEST(TranslationOfRemotes, RefusesDataOfAnotherLength) {
  RemoteArguments arguments = session::testing::some_remote();
  arguments.data.pop_back();
  EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  arguments.data.resize(9);
  EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  arguments.data.resize(8);
  arguments.head.kind = OFFPATH_GET;
  EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  arguments.head.kind = OFFPATH_PUT;
  arguments.head.target_bytes = 4096;
  EXPECT_EQ(code(arguments), OFFPATH_ERR_ARGUMENT);
  arguments.data.clear();
  EXPECT_EQ(code(arguments), OFFPATH_OK) << "it lies with the client";
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
