// SPDX-License-Identifier: BSD-3-Clause
#include "engine/runner/runner.hpp"

namespace offpath::engine {

void Runner::later(Operation& operation, uint64_t ticket, Then then) {
  ++operation.accesses;
  accesses_.emplace(ticket, Access{operation.id, std::move(then)});
}

bool Runner::reap() {
  if (accesses_.empty()) return false;
  const auto ended_accesses = completions_.take();
  for (const auto& [ticket, status] : ended_accesses) end_access(ticket, status);
  return !ended_accesses.empty();
}

void Runner::end_access(uint64_t ticket, const base::Status& status) {
  const Access access = std::move(accesses_.extract(ticket).mapped());
  const auto found = core_.operations.find(access.operation);
  Operation* operation = found == core_.operations.end() ? nullptr : found->second.get();
  if (operation != nullptr) --operation->accesses;
  const bool over = operation == nullptr || operation->over;
  access.then(over ? nullptr : operation, status);
  if (operation != nullptr && over && operation->accesses == 0) ended_.push_back(operation);
  settle();
}

}  // namespace offpath::engine
