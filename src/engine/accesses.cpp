// SPDX-License-Identifier: BSD-3-Clause
// Accesses that ports do later. An operation with one under way does not end: nothing may touch its client's memory then.
#include "engine/state.hpp"

namespace offpath::engine {

bool State::reap() {
  if (accesses.empty()) return false;
  const auto ended_accesses = completions.take();
  for (const auto& [ticket, status] : ended_accesses) end_access(ticket, status);
  return !ended_accesses.empty();
}

void State::end_access(uint64_t ticket, const base::Status& status) {
  const Access access = std::move(accesses.extract(ticket).mapped());
  const auto found = operations.find(access.operation);
  Operation* operation = found == operations.end() ? nullptr : found->second.get();
  if (operation != nullptr) --operation->accesses;
  const bool over = operation == nullptr || operation->over;
  access.then(over ? nullptr : operation, status);
  if (operation != nullptr && over && operation->accesses == 0) ended.push_back(operation);
  settle();
}

}  // namespace offpath::engine
