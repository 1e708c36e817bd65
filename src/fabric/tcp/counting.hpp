// SPDX-License-Identifier: BSD-3-Clause
// Counting: what the system has counted of an endpoint's connections, together. Asking it is a system call for each of them. So a
// look asks only those that may have moved since they were asked, and of these a bounded number, in turn. What connections have
// counted that ended stays in the sums. Internal to fabric/tcp; on the endpoint's thread.
#pragma once

#include "fabric/tcp/sockets.hpp"

#include <deque>
#include <optional>
#include <utility>
#include <vector>

namespace offpath::fabric::tcp {

// What was counted since `before`; of round trips the longest.
void add_counts(const Connection& now, const Connection& before, Connection& sum);

class Counting {
 public:
  using Ask = std::optional<Counted> (*)(int socket);
  static constexpr size_t kAsked = 64;  // at one look, at most

  explicit Counting(Ask asked = counts_of) : ask_(asked) {}
  // Its number here.
  size_t begin(int socket);
  // It has sent or got something. For every read and write: no system call.
  void note_moved(size_t number) {
    if (std::exchange(known_[number].waits, true)) return;
    waiting_.push_back(number);
  }
  // Before it is closed.
  void end(size_t number);
  // The sum; of round trips the longest.
  Connection look();

 private:
  struct Known {
    int socket = -1;
    bool waits = false;  // to be asked
    Connection counted = {};
  };
  // Whether more may be counted though nothing is sent or read.
  bool ask(Known& one);

  const Ask ask_;
  std::vector<Known> known_;
  std::deque<size_t> waiting_;
  Connection sum_;
};

}  // namespace offpath::fabric::tcp
