// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/roster.hpp"

#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

namespace offpath::engine {
namespace {

std::vector<uint32_t> each_once(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// Of this service by number, others by address.
std::pair<uint32_t, std::string_view> name_of(const WorkerAddress& worker) {
  if (worker.local) return {worker.worker, {}};
  return {UINT32_MAX, {reinterpret_cast<const char*>(worker.address.data()), worker.address.size()}};
}

}  // namespace

Roster::Roster(std::span<const WorkerAddress> members) : Roster(members, each_once(members.size())) {}

Roster::Roster(std::span<const WorkerAddress> workers, std::span<const uint32_t> worker_of) {
  auto all = std::make_shared<All>();
  auto found_workers = std::make_shared<std::vector<WorkerAddress>>();
  std::map<std::pair<uint32_t, std::string_view>, uint32_t> known;
  std::vector<std::optional<uint32_t>> number_of(workers.size());
  for (const uint32_t given : worker_of) {
    if (!number_of[given]) {
      const auto next = static_cast<uint32_t>(found_workers->size());
      const auto [found, is_new] = known.try_emplace(name_of(workers[given]), next);
      if (is_new) found_workers->push_back(workers[given]);
      number_of[given] = found->second;
    }
    all->worker_of.push_back(*number_of[given]);
  }
  all->workers = std::move(found_workers);
  all_ = std::move(all);
}

bool Roster::share(const Roster& other) {
  if (all_->workers != other.all_->workers && workers() != other.workers()) return false;
  if (worker_of() == other.worker_of()) {
    all_ = other.all_;
    return true;
  }
  if (all_->workers != other.all_->workers) all_ = std::make_shared<All>(All{other.all_->workers, worker_of()});
  return false;
}

}  // namespace offpath::engine
