// SPDX-License-Identifier: BSD-3-Clause
// What a worker's clients cost that no process of their host shows (docs/design/0055-energy.md): processor time of executors
// and of a service on another machine, and the energy of the service's machine. Each client is charged its share, so that sums
// over all ranks are those of the job, however many share a service.
#pragma once

#include "base/energy.hpp"

#include <cstdint>
#include <utility>

namespace offpath::service {

class Charges {
 public:
  // So far, of everybody.
  struct Spent {
    uint64_t executors_ns = 0;  // of this worker
    uint64_t process_ns = 0;    // of the service, where its clients do not see it; else 0
    uint32_t clients = 0;       // of this worker
    uint32_t all_clients = 0;   // of the service
  };
  struct Share {
    uint64_t cpu_ns = 0, energy_uj = 0;
    bool energy_is_known = false;
  };

  explicit Charges(base::EnergyMeter meter = base::EnergyMeter()) : meter_(std::move(meter)) {}

  // Whether it is worth a look.
  bool is_due(uint64_t now_ns) const { return now_ns - looked_ns_ >= kEveryNs; }
  // What each client is to be charged now. Less than a millisecond of processor time waits for more.
  Share take(uint64_t now_ns, const Spent& spent);
  // So long a worker with nothing else to do may sleep until it looks at the machine's counters; -1: there are none.
  int timeout_ms() const { return meter_.works() ? kIdleMs : -1; }

 private:
  static constexpr uint64_t kEveryNs = 10'000'000, kLeastNs = 1'000'000;
  static constexpr int kMeterMs = 100, kIdleMs = 1000;

  base::EnergyMeter meter_;
  Spent before_{};
  uint64_t looked_ns_ = 0, metered_ns_ = 0;
  uint64_t owed_cpu_ns_ = 0, owed_energy_uj_ = 0;
};

}  // namespace offpath::service
