// SPDX-License-Identifier: BSD-3-Clause
#include "service/charges.hpp"

#include <algorithm>
#include <utility>

namespace offpath::service {
namespace {

uint64_t grown(uint64_t now, uint64_t before) { return now > before ? now - before : 0; }

// What is owed in equal parts; the rest stays owed.
uint64_t divide(uint64_t& owed, uint32_t clients) {
  const uint64_t each = owed / clients;
  owed -= each * clients;
  return each;
}

}  // namespace

Charges::Share Charges::take(uint64_t now_ns, const Spent& spent) {
  looked_ns_ = now_ns;
  const Spent before = std::exchange(before_, spent);
  const uint64_t all = std::max({spent.clients, spent.all_clients, 1U});
  const auto own_part = [&](uint64_t of_service) { return of_service * spent.clients / all; };
  owed_cpu_ns_ += grown(spent.executors_ns, before.executors_ns) + own_part(grown(spent.process_ns, before.process_ns));
  const bool meters = meter_.works() && now_ns - metered_ns_ >= uint64_t{kMeterMs} * 1'000'000;
  if (meters) {
    metered_ns_ = now_ns;
    owed_energy_uj_ += own_part(meter_.take_uj(now_ns));
  }
  Share share;
  share.energy_is_known = meter_.works();
  if (spent.clients == 0) return share;
  if (owed_cpu_ns_ >= kLeastNs * spent.clients) share.cpu_ns = divide(owed_cpu_ns_, spent.clients);
  share.energy_uj = divide(owed_energy_uj_, spent.clients);
  return share;
}

}  // namespace offpath::service
