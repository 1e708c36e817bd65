// SPDX-License-Identifier: BSD-3-Clause
#include "multicast/repair.hpp"

#include <utility>

namespace offpath::multicast {

Fetch::Wish Fetch::next(const Arrivals& arrivals) {
  const uint32_t nodes = arrivals.shape().nodes();
  if (stage_ == Stage::waiting && arrivals.has(part_)) stage_ = Stage::choosing;  // it came by itself
  if (stage_ == Stage::pulling) {
    if (under_way_ < limits_.pulls) {
      const Chunks run = arrivals.gap(part_, from_, limits_.run);
      if (run.count > 0) {
        from_ = run.first + run.count;
        ++under_way_;
        return {Wish::Kind::pull, part_, run};
      }
    }
    if (under_way_ == 0) stage_ = Stage::choosing;
  }
  if (stage_ != Stage::choosing || !(begun_ || arrivals.complete())) return {};
  for (; distance_ < nodes; ++distance_) {
    part_ = (own_ + nodes - distance_) % nodes;
    if (arrivals.has(part_)) continue;
    from_ = arrivals.shape().part(part_).first;
    stage_ = Stage::waiting;
    return {Wish::Kind::need, part_, {}};
  }
  stage_ = Stage::finished;
  return {Wish::Kind::fin, 0, {}};
}

bool Fetch::ready(const Arrivals& arrivals, uint32_t part) {
  if (stage_ != Stage::waiting || part != part_) {  // an answer to what is not asked any more
    return begun_ && part < arrivals.shape().nodes() && arrivals.has(part);
  }
  stage_ = Stage::pulling;
  return true;
}

bool Fetch::fetched() {
  if (stage_ != Stage::pulling || under_way_ == 0) return false;
  --under_way_;
  return true;
}

bool Serve::need(const Arrivals& arrivals, uint32_t part) {
  if (finished_ || part >= arrivals.shape().nodes()) return false;
  asked_ = part;
  return true;
}

bool Serve::fin() {
  if (finished_) return false;
  asked_.reset();
  finished_ = true;
  return true;
}

std::optional<uint32_t> Serve::take_ready(const Arrivals& arrivals) {
  if (!asked_ || !arrivals.has(*asked_)) return std::nullopt;
  granted_ = std::exchange(asked_, std::nullopt);
  return granted_;
}

bool Serve::may_pull(const Arrivals& arrivals, uint32_t part, const Chunks& run) const {
  if (finished_ || granted_ != part || run.count == 0) return false;
  const Chunks whole = arrivals.shape().part(part);
  return run.first >= whole.first && run.first - whole.first < whole.count &&
         run.count <= whole.count - (run.first - whole.first);
}

}  // namespace offpath::multicast
