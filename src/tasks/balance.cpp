// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/balance.hpp"

#include <algorithm>

namespace offpath::tasks {

namespace {
constexpr uint64_t kMostAhead = 8;         // tasks for each executor beside the one that it runs
constexpr uint64_t kPatienceNs = 2000000;  // beyond what was expected

// Executors that are busy when a task leaves for them run on while it is under way: half of the trip is the way there.
uint64_t begins_after_ns(uint64_t wait_ns, uint64_t trip_ns) {
  return trip_ns + wait_ns - std::min(wait_ns, trip_ns / 2);
}
}  // namespace

uint64_t expected_cost_ns(const Mean& lately, uint64_t said_ns, double ratio) {
  if (said_ns == 0 || !lately.known()) return std::min(lately.ns(said_ns), kMostCostNs);
  const double expected = static_cast<double>(said_ns) * ratio;
  return expected > 0 && expected < static_cast<double>(kMostCostNs) ? static_cast<uint64_t>(expected)
         : expected > 0                                              ? kMostCostNs
                                                                     : 0;
}

std::vector<uint32_t> neighbours(uint32_t own, uint32_t count) {
  std::vector<uint32_t> out;
  for (uint64_t distance = 1; distance <= count / 2; distance *= 2) {
    for (const uint64_t at : {own + distance, own + count - distance}) {
      const auto next = static_cast<uint32_t>(at % count);
      if (next != own && std::find(out.begin(), out.end(), next) == out.end()) out.push_back(next);
    }
  }
  return out;
}

uint64_t drain_ns(const Load& load) { return (load.ready_ns + load.running_ns) / std::max(1U, load.executors); }

uint64_t cost_ns(const Load& load) { return load.ready == 0 ? 0 : load.ready_ns / load.ready; }

uint64_t cost_there_ns(const Load& load) { return load.there_ns == 0 ? cost_ns(load) : load.there_ns; }

Load aged(const Load& load, uint64_t elapsed_ns) {
  Load out = load;
  const uint64_t longest_ns = load.ready_ns + load.running_ns;  // as one executor would take
  const uint64_t run_ns = std::min(elapsed_ns, longest_ns) * std::max(1U, load.executors);
  out.running_ns -= std::min(load.running_ns, run_ns);
  out.ready_ns -= std::min(load.ready_ns, run_ns - std::min(run_ns, load.running_ns));
  const uint64_t cost = std::max<uint64_t>(1, cost_ns(load));
  out.ready =
      std::min(load.ready, static_cast<uint32_t>(std::min<uint64_t>((out.ready_ns + cost - 1) / cost, UINT32_MAX)));
  return out;
}

bool is_worth_asking(const Load& load) {
  return load.ready > 0 && load.running >= load.executors && drain_ns(load) > load.trip_ns + cost_there_ns(load);
}

uint32_t room_for_guests(const Load& own, uint32_t guests, uint32_t promised, const Load& asker) {
  if (own.ready > 0 && drain_ns(own) > asker.trip_ns / 2) return 0;  // it would come before they are begun
  const uint64_t ahead = std::min(kMostAhead, 1 + asker.trip_ns / std::max<uint64_t>(1, cost_there_ns(asker)));
  const uint64_t room = (1 + ahead) * own.executors, used = uint64_t{own.running} + own.ready + guests + promised;
  return used >= room ? 0 : static_cast<uint32_t>(room - used);
}

uint32_t share(const Load& asker, const Load& own, uint64_t wait_ns, uint32_t room) {
  if (asker.ready == 0 || own.executors == 0) return 0;
  // x tasks of equal cost: asker.ready - x take its executors as long as x the own ones, from when the first is begun.
  const double a_task = static_cast<double>(cost_ns(asker)) / std::max(1U, asker.executors) +
                        static_cast<double>(cost_there_ns(asker)) / own.executors;
  const double ahead =
      static_cast<double>(drain_ns(asker)) - static_cast<double>(begins_after_ns(wait_ns, asker.trip_ns));
  const double even = a_task > 0 ? std::min(ahead / a_task, 1.0 * asker.ready) : 0;
  return std::min({room, asker.ready, static_cast<uint32_t>(std::max(1.0, even))});
}

uint64_t promise_ns(const Load& asker) { return std::min<uint64_t>(asker.trip_ns, 1000 * kPatienceNs) + kPatienceNs; }

std::optional<size_t> choose(std::span<const Load> askers) {
  std::optional<size_t> best;
  for (size_t i = 0; i < askers.size(); ++i) {
    if (!best || drain_ns(askers[i]) > drain_ns(askers[*best])) best = i;
  }
  return best;
}

bool is_sooner_there(const Load& own, uint64_t there_ns) { return own.ready > 0 && drain_ns(own) > there_ns; }

uint64_t end_there_ns(const Grant& grant, uint32_t before, uint64_t trip_ns, uint64_t cost_ns) {
  return begins_after_ns(grant.wait_ns, trip_ns) + cost_ns * (1 + before / std::max(1U, grant.executors));
}

uint64_t wait_for_executor_ns(const Load& own, uint64_t guests_ns) {
  return own.running < own.executors ? 0 : (own.running_ns + own.ready_ns + guests_ns) / std::max(1U, own.executors);
}

bool is_overdue(const Away& away, uint64_t now_ns, bool home_is_idle) {
  if (away.deadline_ns != 0 && now_ns + away.cost_ns >= away.deadline_ns && now_ns >= away.since_ns + away.expected_ns)
    return true;
  return home_is_idle && now_ns >= next_look_ns(away);
}

uint64_t next_look_ns(const Away& away) { return away.since_ns + 2 * away.expected_ns + kPatienceNs; }

}  // namespace offpath::tasks
