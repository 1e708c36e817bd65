// SPDX-License-Identifier: BSD-3-Clause
#include "service/charges.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace offpath::service {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(Charges, AreDividedEvenlyAndNothingIsLost) {
  Charges charges{base::EnergyMeter("/nowhere")};
  uint64_t sum = 0;
  for (uint64_t i = 1; i <= 10; ++i) {
    const auto share = charges.take(i * 20 * kMs, {.executors_ns = i * 10'000'001, .clients = 3});
    sum += 3 * share.cpu_ns;
    EXPECT_FALSE(share.energy_is_known);
    EXPECT_EQ(share.energy_uj, 0U);
  }
  EXPECT_LE(sum, 100'000'010U);
  EXPECT_GT(sum, 100'000'010U - 3);
}

TEST(Charges, AreWhatEachWorkerHasOfTheService) {
  Charges one{base::EnergyMeter("/nowhere")}, other{base::EnergyMeter("/nowhere")};
  const auto at_one = one.take(kMs, {.process_ns = 80 * kMs, .clients = 3, .all_clients = 4});
  const auto at_other = other.take(kMs, {.process_ns = 80 * kMs, .clients = 1, .all_clients = 4});
  EXPECT_EQ(at_one.cpu_ns, 20 * kMs);
  EXPECT_EQ(at_other.cpu_ns, 20 * kMs);
}

TEST(Charges, OfExecutorsWaitForAClient) {
  Charges charges{base::EnergyMeter("/nowhere")};
  EXPECT_EQ(charges.take(kMs, {.executors_ns = 5 * kMs}).cpu_ns, 0U);
  EXPECT_EQ(charges.take(2 * kMs, {.executors_ns = 5 * kMs, .clients = 1}).cpu_ns, 5 * kMs);
}

TEST(Charges, OfLessThanAMillisecondWaitForMore) {
  Charges charges{base::EnergyMeter("/nowhere")};
  EXPECT_EQ(charges.take(kMs, {.executors_ns = kMs / 2, .clients = 1}).cpu_ns, 0U);
  EXPECT_EQ(charges.take(2 * kMs, {.executors_ns = kMs, .clients = 1}).cpu_ns, kMs);
}

TEST(Charges, HaveTheMachinesEnergyUntilItSaysNoMore) {
  char name[] = "/tmp/offpath-charges-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const std::filesystem::path sensor = std::filesystem::path(name) / "class/hwmon/hwmon0";
  std::filesystem::create_directories(sensor);
  const auto says = [&](int uj) { std::ofstream(sensor / "energy1_input") << uj; };
  says(10);
  Charges charges{base::EnergyMeter(name)};
  EXPECT_GT(charges.timeout_ms(), 0);
  says(30);
  const auto share = charges.take(1000 * kMs, {.clients = 2, .all_clients = 4});
  EXPECT_TRUE(share.energy_is_known);
  EXPECT_EQ(share.energy_uj, 5U);
  std::filesystem::remove_all(name);
  EXPECT_FALSE(charges.take(2000 * kMs, {.clients = 2, .all_clients = 4}).energy_is_known);
  EXPECT_LT(charges.timeout_ms(), 0);
}

}  // namespace
}  // namespace offpath::service
