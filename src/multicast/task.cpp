// SPDX-License-Identifier: BSD-3-Clause
#include "multicast/task.hpp"

namespace offpath::multicast {

Task::Task(Shape shape, uint32_t own, const Config& config)
    : own_(own),
      arrivals_(std::move(shape), own),
      chains_(arrivals_.shape(), config.chains),
      fetch_(own, config.fetch),
      awaited_(chains_.last_others(own)) {}

void Task::go(bool multicast) {
  if (begun_) return;
  begun_ = true;
  if (!multicast || nodes() == 1 || !chains_.sends(own_)) turn_ = Turn::over;
  if (!multicast) fetch_.begin();
  if (turn_ == Turn::before && chains_.begins(own_)) send();
  settle();
}

void Task::send() {
  turn_ = Turn::sending;
  acts_.push_back({Act::Kind::send, own_, own_, arrivals_.shape().part(own_)});
}

void Task::sent() {
  if (turn_ != Turn::sending) return;
  turn_ = Turn::over;
  if (const auto next = chains_.next(own_)) acts_.push_back({Act::Kind::token, *next, 0, {}});
  settle();
}

void Task::note(const Chunks& run) {
  arrivals_.note(run);
  const uint32_t owner = arrivals_.shape().owner(run.first);
  const Chunks part = arrivals_.shape().part(owner);
  if (run.first + run.count == part.first + part.count) std::erase(awaited_, owner);
  settle();
}

void Task::quiet() {
  if (begun_) fetch_.begin();
  settle();
}

bool Task::token(uint32_t from) {
  const bool mine = chains_.sends(own_) && !chains_.begins(own_) && chains_.sends(from) && chains_.next(from) == own_;
  if (!mine || turn_ != Turn::before) return false;
  begun_ = true;  // the word that all are armed may be on its way still
  send();
  settle();
  return true;
}

bool Task::need(uint32_t from, uint32_t part) {
  if (from != successor() || from == own_ || !serve_.need(arrivals_, part)) return false;
  settle();
  return true;
}

bool Task::ready(uint32_t from, uint32_t part) {
  if (from != predecessor() || from == own_ || !fetch_.ready(arrivals_, part)) return false;
  settle();
  return true;
}

bool Task::fin(uint32_t from) {
  if (from != successor() || from == own_ || !serve_.fin()) return false;
  settle();
  return true;
}

bool Task::may_pull(uint32_t from, uint32_t part, const Chunks& run) const {
  return from == successor() && from != own_ && serve_.may_pull(arrivals_, part, run);
}

bool Task::fetched(const Chunks& run) {
  if (!fetch_.fetched()) return false;
  arrivals_.note(run);
  repaired_ += run.count;
  settle();
  return true;
}

void Task::settle() {
  if (over_) return;
  if (const auto part = serve_.take_ready(arrivals_)) acts_.push_back({Act::Kind::ready, successor(), *part, {}});
  if (!begun_) return;
  // Where all chains have come to their end, what is not here is lost, or so late that asking for it costs nothing.
  if (awaited_.empty()) fetch_.begin();
  if (nodes() == 1) {  // nobody to ask or to serve
    over_ = true;
    return;
  }
  using Wish = Fetch::Wish::Kind;
  for (auto wish = fetch_.next(arrivals_); wish.kind != Wish::none; wish = fetch_.next(arrivals_)) {
    const Act::Kind kind = wish.kind == Wish::need   ? Act::Kind::need
                           : wish.kind == Wish::pull ? Act::Kind::pull
                                                     : Act::Kind::fin;
    acts_.push_back({kind, predecessor(), wish.part, wish.run});
    if (wish.kind != Wish::pull) break;
  }
  over_ = fetch_.finished() && serve_.finished() && turn_ == Turn::over;
}

std::optional<Act> Task::next() {
  if (acts_.empty()) return std::nullopt;
  const Act act = acts_.front();
  acts_.pop_front();
  return act;
}

}  // namespace offpath::multicast
