// SPDX-License-Identifier: BSD-3-Clause
#include "tasks/balance.hpp"

#include <algorithm>

namespace offpath::tasks {

namespace {
constexpr uint64_t kMostAhead = 8;         // tasks for each executor beside the one that it runs
constexpr uint64_t kPatienceNs = 2000000;  // beyond what was expected
}  // namespace

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

bool is_worth_asking(const Load& load) {
  return load.ready > 0 && load.running >= load.executors && drain_ns(load) > load.trip_ns + cost_ns(load);
}

uint32_t room_for_guests(const Load& own, uint32_t guests, uint32_t promised, const Load& asker) {
  if (own.ready > 0) return 0;
  const uint64_t ahead = std::min(kMostAhead, 1 + asker.trip_ns / std::max<uint64_t>(1, cost_ns(asker)));
  const uint64_t room = (1 + ahead) * own.executors, used = uint64_t{own.running} + guests + promised;
  return used >= room ? 0 : static_cast<uint32_t>(room - used);
}

uint32_t share(const Load& asker, const Load& own, uint32_t room) {
  if (asker.ready == 0 || own.executors == 0) return 0;
  const double executors = std::max(1U, asker.executors);
  // x tasks of equal cost: asker.ready - x on its executors take as long as x on the own ones.
  const double even = asker.ready * (own.executors / (executors + own.executors));
  return std::min({room, asker.ready, static_cast<uint32_t>(std::max(1.0, even))});
}

std::optional<size_t> choose(std::span<const Load> askers) {
  std::optional<size_t> best;
  for (size_t i = 0; i < askers.size(); ++i) {
    if (!best || drain_ns(askers[i]) > drain_ns(askers[*best])) best = i;
  }
  return best;
}

bool is_sooner_there(const Load& own, uint64_t there_ns) { return own.ready > 0 && drain_ns(own) > there_ns; }

uint64_t end_there_ns(const Grant& grant, uint32_t before, uint64_t trip_ns, uint64_t cost_ns) {
  return grant.wait_ns + trip_ns + cost_ns * (1 + before / std::max(1U, grant.executors));
}

uint64_t wait_for_executor_ns(const Load& own, uint64_t guests_ns) {
  return own.running < own.executors ? 0 : (own.running_ns + guests_ns) / std::max(1U, own.executors);
}

bool is_overdue(const Away& away, uint64_t now_ns, bool home_is_idle) {
  if (away.deadline_ns != 0 && now_ns + away.cost_ns >= away.deadline_ns && now_ns >= away.since_ns + away.expected_ns)
    return true;
  return home_is_idle && now_ns >= next_look_ns(away);
}

uint64_t next_look_ns(const Away& away) { return away.since_ns + 2 * away.expected_ns + kPatienceNs; }

}  // namespace offpath::tasks
