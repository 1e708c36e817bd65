// SPDX-License-Identifier: BSD-3-Clause
#include "device/device_list.hpp"

#include <gtest/gtest.h>

namespace offpath::device {
namespace {

TEST(DeviceList, Entries) {
  const auto list = parse_device_list(" local, bf2=10.0.0.1:7001 ,[::1]:7002/x86_64,");
  ASSERT_TRUE(list.ok()) << list.status().text();
  ASSERT_EQ(list.value().size(), 3U);
  EXPECT_TRUE(list.value()[0].local());
  EXPECT_EQ(list.value()[0].machine, own_machine());
  EXPECT_EQ(list.value()[1].name, "bf2");
  EXPECT_EQ(list.value()[1].address, "10.0.0.1:7001");
  EXPECT_EQ(list.value()[1].host, "10.0.0.1");
  EXPECT_EQ(list.value()[1].port, 7001);
  EXPECT_EQ(list.value()[1].machine, kMachineAArch64);
  EXPECT_EQ(list.value()[2].host, "::1");
  EXPECT_EQ(list.value()[2].machine, kMachineX86_64);
}

TEST(DeviceList, NoDevices) {
  EXPECT_TRUE(parse_device_list("none").ok());
  EXPECT_TRUE(parse_device_list("none").value().empty());
  EXPECT_TRUE(parse_device_list("").value().empty());
}

TEST(DeviceList, BadEntriesAreNamed) {
  for (const char* text : {"somewhere", "host:", "host:0", "host:70000", "host:1x", ":7001", "host:7001/sparc",
                           "=local", "local,local", "a=local,a=h:1"}) {
    const auto list = parse_device_list(text);
    ASSERT_FALSE(list.ok()) << text;
    EXPECT_NE(std::string(list.status().text()).find("OFFPATH_DEVICES"), std::string::npos);
  }
}

}  // namespace
}  // namespace offpath::device
