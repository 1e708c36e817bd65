// SPDX-License-Identifier: BSD-3-Clause
#include "device/starter.hpp"

#include <gtest/gtest.h>

namespace offpath::device {
namespace {

TEST(Starter, AddressesWithWishes) {
  const auto plain = parse_starter("10.0.0.2:7001");
  ASSERT_TRUE(plain.ok()) << plain.status().text();
  EXPECT_EQ(plain->entry.host, "10.0.0.2");
  EXPECT_EQ(plain->entry.port, 7001);
  EXPECT_EQ(plain->wishes.workers, 0U);
  const auto wishes =
      parse_starter("[::1]:80/workers=2/executors=3/functions=%2Fa%2Flib/cores=2+4-7/share/arch=x86_64");
  ASSERT_TRUE(wishes.ok()) << wishes.status().text();
  EXPECT_EQ(wishes->entry.host, "::1");
  EXPECT_EQ(wishes->wishes.workers, 2U);
  EXPECT_EQ(wishes->wishes.executors, 3U);
  EXPECT_EQ(wishes->wishes.functions, "/a/lib");
  EXPECT_EQ(wishes->wishes.cores, "2,4-7");
  EXPECT_EQ(wishes->wishes.machine, kMachineX86_64);
  EXPECT_TRUE(wishes->wishes.shares_cores && !plain->wishes.shares_cores);
}

TEST(Starter, WhatIsNone) {
  for (const char* text :
       {"", "dpu", "dpu:", ":1", "dpu:0", "dpu:65536", "dpu:1/x", "dpu:1/workers=0", "dpu:1/workers=65",
        "dpu:1/cores=", "dpu:1/cores=a", "dpu:1/cores=1;2", "dpu:1/arch=vax", "dpu:1/share=yes", "dpu:1/executors=65",
        "dpu:1/functions=", "dpu:1/functions=lib", "dpu:1/functions=%2Fa b", "dpu:1/functions=%2Fa;b"}) {
    EXPECT_FALSE(parse_starter(text).ok()) << text;
  }
}

TEST(Starter, RequestsAndAnswersComeOutAsTheyWentIn) {
  StartRequest request;
  request.token.fill(0x2f);  // a slash
  request.wishes = {3, 7, "0,2-5", "/opt/lib", kMachineAArch64, true};
  const auto read = decode_request(encode_request(request));
  ASSERT_TRUE(read.ok()) << read.status().text();
  EXPECT_EQ(read->token, request.token);
  EXPECT_EQ(read->wishes.workers, 3U);
  EXPECT_EQ(read->wishes.executors, 7U);
  EXPECT_EQ(read->wishes.functions, "/opt/lib");
  EXPECT_EQ(read->wishes.cores, "0,2-5");
  EXPECT_TRUE(read->wishes.shares_cores);
  EXPECT_EQ(decode_answer(encode_answer(std::string("{\"a\": 1}"))).value(), "{\"a\": 1}");
  const auto refused = decode_answer(encode_answer(base::Status::error(OFFPATH_ERR_NO_SERVICE, "full\x1b[2J")));
  EXPECT_EQ(refused.status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_STREQ(refused.status().text(), "full [2J");
  EXPECT_FALSE(decode_request("short").ok());
  EXPECT_FALSE(decode_request(std::string(OFFPATH_TOKEN_BYTES, 'x') + "cores=$(reboot)/").ok());
  EXPECT_FALSE(decode_answer("x").ok());
}

TEST(Starter, DpusWithAStarterAreDevices) {
  const auto devices = devices_of("exec:ssh dpu offpathd --for-agents,a:1/arch=x86_64,b:2/workers=2");
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 2U);
  EXPECT_EQ(devices.value()[0].name, "a:1");
  EXPECT_EQ(devices.value()[0].machine, kMachineX86_64);
  EXPECT_EQ(devices.value()[1].machine, kMachineAArch64);
  EXPECT_FALSE(devices_of("a:1,b").ok());
}

}  // namespace
}  // namespace offpath::device
