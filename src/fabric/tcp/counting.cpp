// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/counting.hpp"

#include <algorithm>

namespace offpath::fabric::tcp {

void add_counts(const Connection& now, const Connection& before, Connection& sum) {
  for (const auto field :
       {&Connection::sent, &Connection::resent, &Connection::disordered, &Connection::busy_us, &Connection::room_us}) {
    sum.*field += now.*field - before.*field;
  }
  sum.round_us = std::max(sum.round_us, now.round_us);
}

size_t Counting::begin(int socket) {
  known_.push_back({socket});
  ++sum_.count;
  note_moved(known_.size() - 1);
  return known_.size() - 1;
}

bool Counting::ask(Known& one) {
  const auto now = ask_(one.socket);
  if (!now) return false;
  add_counts(now->counts, std::exchange(one.counted, now->counts), sum_);
  return now->under_way;
}

void Counting::end(size_t number) {
  Known& one = known_[number];
  ask(one);
  one.socket = -1;
  one.counted.round_us = 0;
  --sum_.count;
}

Connection Counting::look() {
  for (size_t left = std::min(waiting_.size(), kAsked); left > 0; --left) {
    const size_t number = waiting_.front();
    waiting_.pop_front();
    known_[number].waits = false;
    if (known_[number].socket >= 0 && ask(known_[number])) note_moved(number);
  }
  Connection sum = sum_;
  sum.round_us = 0;  // those that are slow may have ended, or be faster now
  for (const Known& one : known_) sum.round_us = std::max(sum.round_us, one.counted.round_us);
  return sum;
}

}  // namespace offpath::fabric::tcp
