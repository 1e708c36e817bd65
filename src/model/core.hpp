// SPDX-License-Identifier: BSD-3-Clause
// A core and who runs on it. Communication is urgent: it goes first, one piece after the other, and stops computation
// meanwhile (a worker that wakes up gets the core at once). Computations share what is left evenly.
#pragma once

#include "model/events.hpp"

#include <deque>
#include <list>

namespace offpath::model {

class Core {
 public:
  explicit Core(Events& events) : events_(events) {}
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  // `done` is called when that much processor time has been spent on it.
  void urgent(double cost_ns, Action done);
  void compute(double cost_ns, Action done);
  double spent_ns() const { return spent_ns_; }  // so far, or taken on

 private:
  struct Work {
    double left_ns;
    Action done;
  };
  void start_urgent();
  void advance();
  void plan();

  Events& events_;
  std::deque<Work> urgent_;
  std::list<Work> computing_;
  bool busy_ = false;
  double since_ns_ = 0;  // computations have been brought up to this time
  double spent_ns_ = 0;
  uint64_t version_ = 0;  // of the plan; older ones are void
};

}  // namespace offpath::model
