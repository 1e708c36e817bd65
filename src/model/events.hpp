// SPDX-License-Identifier: BSD-3-Clause
// Discrete events: what happens when, in the order of time and, at one time, in the order of scheduling, so that a
// simulation gives the same result each time. Times are nanoseconds from the start. Single threaded.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace offpath::model {

using Action = std::function<void()>;

class Events {
 public:
  double now_ns() const { return now_ns_; }
  uint64_t handled() const { return handled_; }

  // Earlier than now means now.
  void at(double time_ns, Action action) {
    queue_.push({time_ns > now_ns_ ? time_ns : now_ns_, next_++, std::move(action)});
  }
  void after(double delay_ns, Action action) { at(now_ns_ + delay_ns, std::move(action)); }

  // False: nothing is left to happen.
  bool step() {
    if (queue_.empty()) return false;
    Event event = std::move(const_cast<Event&>(queue_.top()));  // popped at once
    queue_.pop();
    now_ns_ = event.time_ns;
    ++handled_;
    event.action();
    return true;
  }

 private:
  struct Event {
    double time_ns;
    uint64_t number;
    Action action;
    bool operator<(const Event& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
    }
  };

  std::priority_queue<Event> queue_;
  double now_ns_ = 0;
  uint64_t next_ = 0;
  uint64_t handled_ = 0;
};

}  // namespace offpath::model
