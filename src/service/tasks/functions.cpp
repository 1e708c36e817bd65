// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/functions.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::service {

using base::Status;

base::Result<uint32_t> Functions::number_of(tasks::Function function) {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const Known& known) { return known.function == function; });
  const auto number = static_cast<uint32_t>(found - known_.begin());
  if (found != known_.end()) return number;
  if (number == tasks::kMaxFunctions)
    return Status::error(OFFPATH_ERR_NO_MEMORY, "more than %u functions are registered with a service",
                         tasks::kMaxFunctions);
  tasks::FunctionPlace place{};
  const auto keep = [&](const std::string& text, uint64_t& offset) {
    const auto room = room_.reserve(text.size() + 1);
    if (!room) return false;
    offset = *room;
    memcpy(room_.at(*room, text.size() + 1), text.c_str(), text.size() + 1);
    return true;
  };
  if (!keep(function.library, place.library) || !keep(function.symbol, place.symbol) ||
      (function.is_signed && !keep(function.signature, place.signature))) {
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no room for the name of a function");
  }
  place.is_target = function.is_target ? 1 : 0;
  room_.board().function(number) = place;
  known_.push_back({std::move(function), {}, 0});
  return number;
}

uint64_t Functions::cost_of(const tasks::Task& task) const {
  const Known& known = known_[task.function];
  return tasks::expected_cost_ns(known.cost, task.cost_ns, known.hint);
}

void Functions::note_run(const tasks::Task& task, uint64_t run_ns) {
  Known& known = known_[task.function];
  known.cost.add(std::max<uint64_t>(run_ns, 1));
  if (task.cost_ns == 0) return;
  const double ratio = static_cast<double>(run_ns) / static_cast<double>(task.cost_ns);
  known.hint = known.hint == 0 ? ratio : known.hint * 0.75 + ratio * 0.25;
}

}  // namespace offpath::service
