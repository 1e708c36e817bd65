// SPDX-License-Identifier: BSD-3-Clause
#include "model/core.hpp"

#include <algorithm>
#include <vector>

namespace offpath::model {

namespace {
constexpr double kNothingNs = 1e-6;  // what rounding leaves of a computation
}

void Core::urgent(double cost_ns, Action done) {
  spent_ns_ += cost_ns;
  urgent_.push_back({cost_ns, std::move(done)});
  if (!busy_) start_urgent();
}

void Core::start_urgent() {
  advance();
  busy_ = true;
  plan();
  events_.after(urgent_.front().left_ns, [this] {
    const Action done = std::move(urgent_.front().done);
    urgent_.pop_front();
    advance();
    busy_ = false;
    plan();
    done();
    if (!busy_ && !urgent_.empty()) start_urgent();
  });
}

void Core::compute(double cost_ns, Action done) {
  spent_ns_ += cost_ns;
  advance();
  computing_.push_back({cost_ns, std::move(done)});
  plan();
}

void Core::advance() {
  const double passed_ns = events_.now_ns() - since_ns_;
  since_ns_ = events_.now_ns();
  if (busy_ || computing_.empty()) return;
  const double each_ns = passed_ns / static_cast<double>(computing_.size());
  for (Work& work : computing_) work.left_ns -= each_ns;
}

// The computation that is over first, if nothing happens before.
void Core::plan() {
  const uint64_t version = ++version_;
  if (busy_ || computing_.empty()) return;
  double least_ns = computing_.front().left_ns;
  for (const Work& work : computing_) least_ns = std::min(least_ns, work.left_ns);
  events_.after(std::max(0.0, least_ns) * static_cast<double>(computing_.size()), [this, version] {
    if (version != version_) return;
    advance();
    std::vector<Action> over;
    for (auto it = computing_.begin(); it != computing_.end();) {
      if (it->left_ns > kNothingNs) {
        ++it;
        continue;
      }
      over.push_back(std::move(it->done));
      it = computing_.erase(it);
    }
    plan();
    for (const Action& done : over) done();
  });
}

}  // namespace offpath::model
