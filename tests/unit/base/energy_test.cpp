// SPDX-License-Identifier: BSD-3-Clause
#include "base/energy.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace offpath::base {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// A sysfs of our own.
class Energy : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/offpath-energy-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = root_ + "/class/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  void zone(const std::string& name, const std::string& what, uint64_t uj) const {
    write("powercap/" + name + "/name", what);
    write("powercap/" + name + "/max_energy_range_uj", "1000000");
    write("powercap/" + name + "/energy_uj", std::to_string(uj));
  }

  std::string root_;
};

TEST_F(Energy, IsNotKnownWhereTheMachineHasNoCounters) {
  EnergyMeter meter(root_);
  EXPECT_FALSE(meter.works());
  EXPECT_EQ(meter.take_uj(kSecond), 0U);
}

TEST_F(Energy, IsThatOfAllPackagesAndTheirMemory) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:0:0", "core", 1000);
  zone("intel-rapl:0:1", "dram", 10);
  zone("intel-rapl:1", "package-1", 200);
  zone("intel-rapl:2", "psys", 5000);
  zone("intel-rapl-mmio:0", "package-0", 100);
  write("hwmon/hwmon0/energy1_input", "7");
  EnergyMeter meter(root_);
  ASSERT_TRUE(meter.works());
  EXPECT_EQ(meter.take_uj(kSecond), 0U);
  zone("intel-rapl:0", "package-0", 150);
  zone("intel-rapl:0:0", "core", 1040);
  zone("intel-rapl:0:1", "dram", 17);
  zone("intel-rapl:1", "package-1", 260);
  zone("intel-rapl:2", "psys", 6000);
  write("hwmon/hwmon0/energy1_input", "9000");
  EXPECT_EQ(meter.take_uj(2 * kSecond), 50U + 7 + 60);
  EXPECT_EQ(meter.take_uj(3 * kSecond), 0U);
}

TEST_F(Energy, GoesOnWhereACounterBeginsAnew) {
  zone("intel-rapl:0", "package-0", 999'000);
  EnergyMeter meter(root_);
  zone("intel-rapl:0", "package-0", 500);
  EXPECT_EQ(meter.take_uj(kSecond), 1500U);
  EXPECT_TRUE(meter.works());
}

TEST_F(Energy, IsNotKnownAnyMoreOnceACounterIsGone) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:1", "package-1", 100);
  EnergyMeter meter(root_);
  std::filesystem::remove_all(root_ + "/class/powercap/intel-rapl:1");
  zone("intel-rapl:0", "package-0", 150);
  EXPECT_EQ(meter.take_uj(kSecond), 0U);
  EXPECT_FALSE(meter.works());
  zone("intel-rapl:1", "package-1", 150);
  EXPECT_EQ(meter.take_uj(2 * kSecond), 0U);
}

TEST_F(Energy, IsNotKnownWhereOnlyAPartMayBeRead) {
  zone("intel-rapl:0", "package-0", 100);
  zone("intel-rapl:1", "package-1", 100);
  std::filesystem::remove(root_ + "/class/powercap/intel-rapl:1/energy_uj");
  EXPECT_FALSE(EnergyMeter(root_).works());
  write("powercap/intel-rapl:1/energy_uj", "nonsense");
  EXPECT_FALSE(EnergyMeter(root_).works());
}

TEST_F(Energy, IsNotKnownWhereItMayHaveBegunAnewMoreThanOnce) {
  zone("intel-rapl:0", "package-0", 100);
  EnergyMeter meter(root_);
  EXPECT_EQ(meter.take_uj(kSecond), 0U);
  EXPECT_EQ(meter.take_uj(kSecond + EnergyMeter::kLongestNs), 0U);
  EXPECT_TRUE(meter.works());
  EXPECT_EQ(meter.take_uj(kSecond + 2 * EnergyMeter::kLongestNs + 1), 0U);
  EXPECT_FALSE(meter.works());
}

TEST_F(Energy, IsThatOfSensorsWhereThereIsNoPowercap) {
  write("hwmon/hwmon0/temp1_input", "40000");
  write("hwmon/hwmon1/energy1_input", "10");
  write("hwmon/hwmon1/energy1_label", "Ecore000");
  write("hwmon/hwmon1/energy2_input", "100");
  write("hwmon/hwmon1/energy2_label", "Esocket0");
  write("hwmon/hwmon2/energy1_input", "1000");
  EnergyMeter meter(root_);
  ASSERT_TRUE(meter.works());
  write("hwmon/hwmon1/energy1_input", "11");
  write("hwmon/hwmon1/energy2_input", "102");
  write("hwmon/hwmon2/energy1_input", "1030");
  EXPECT_EQ(meter.take_uj(kSecond), 32U);
  write("hwmon/hwmon2/energy1_input", "30");  // begins anew, and nobody says at what
  EXPECT_EQ(meter.take_uj(2 * kSecond), 0U);
  EXPECT_FALSE(meter.works());
}

}  // namespace
}  // namespace offpath::base
