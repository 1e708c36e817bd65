// SPDX-License-Identifier: BSD-3-Clause
// What this machine has used of energy, where it says so to this process: the processors' packages and memory (powercap), else
// what its sensors add up (hwmon). Most systems tell root alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::base {

class EnergyMeter {
 public:
  // `root`: where sysfs is mounted.
  explicit EnergyMeter(const std::string& root = "/sys");

  // All of its counters have answered so far. One that does not any more ends it for good: what is left is no sum.
  bool works() const { return !counters_.empty(); }
  // In uJ, since the last call or the beginning. To be called more often than every kLongestNs: counters begin anew after some
  // minutes under load, and nobody says how often. Whoever was stopped for longer has a meter that does not work any more.
  uint64_t take_uj(uint64_t now_ns);
  static constexpr uint64_t kLongestNs = 60'000'000'000;

 private:
  struct Counter {
    std::string file;
    uint64_t range_uj;  // the largest it says; 0: it never begins anew
    uint64_t value_uj;
  };
  bool add(const std::string& file, uint64_t range_uj);
  bool add_zone(const std::string& folder);
  void find_zones(const std::string& folder);
  void find_sensors(const std::string& folder);

  std::vector<Counter> counters_;
  uint64_t looked_ns_ = 0;  // 0: not yet
};

}  // namespace offpath::base
