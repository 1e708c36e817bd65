// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/operation.hpp"

namespace offpath::engine {

using base::Status;

Status Operation::resolve(const Place& place, Location& out) const {
  if (place.file > graph.files.size()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a block names file %u of %zu", place.file, graph.files.size());
  }
  const std::shared_ptr<memory::Port>& memory = place.file != 0           ? graph.files[place.file - 1]
                                                : graph.memory != nullptr ? graph.memory
                                                                          : team->memory;
  if (place.layout == kClient) {
    out = {memory, place.base + place.offset};
  } else if (place.layout == kScratch) {
    if (scratch == nullptr) {
      return Status::error(OFFPATH_ERR_NO_MEMORY, "the service has no %llu bytes for partial results",
                           static_cast<unsigned long long>(graph.scratch_bytes));
    }
    out = {scratch, place.base + place.offset};
  } else if (place.layout < layouts.size()) {
    out = {memory::make_strided(memory, place.base, layouts[place.layout]), place.offset};
  } else {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a block names layout %u of %zu", place.layout, layouts.size());
  }
  return {};
}

Status Operation::shortfall() const {
  bool ended = false, torn = false;
  for (uint32_t i = 0; graph.shortfall != OFFPATH_OK && i < own_steps; ++i) {
    const Step& step = graph.steps[i];
    if (step.kind != StepKind::pull || step.bytes == 0) continue;
    const uint64_t came = steps[i].moved;
    torn |= came > step.bytes || (came > 0 ? ended : i == 0);
    ended |= came < step.bytes;
  }
  if (!ended && !torn) return {};
  return Status::error(torn ? OFFPATH_ERR_TRUNCATED : graph.shortfall, "the members state different lengths");
}

}  // namespace offpath::engine
