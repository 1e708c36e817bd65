// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/cut.hpp"

namespace offpath::mpi {

void Cut::combine(const Word& word, int source) {
  heard_.resize(static_cast<size_t>(seat_.size));
  told_.resize(static_cast<size_t>(seat_.size));
  told_[static_cast<size_t>(source)] = word.told;
  combined_.told.add(word.told);
  combined_.next = std::max(combined_.next, word.next);
  combined_.gave_up |= word.gave_up;
  combined_.own_lost |= word.own_lost;
  if (attach::says_more(word.parting, combined_.parting)) combined_.parting = word.parting;
}

int Cut::listen() {
  return hear<Word>(seat_, tag_, [this](const Word& word, int source) {
    combine(word, source);
    if (heard_[static_cast<size_t>(source)]) return;  // a rank's farewell after its word
    heard_[static_cast<size_t>(source)] = true;
    ++heard_count_;
  });
}

void Cut::say(const Word& own, Clock::time_point now) {
  said_ = true;
  since_ = now;
  own_ = own;
  combine(own_, seat_.rank);
  say_to_all(own_, seat_, tag_);
}

void Cut::give_up() {
  farewell_ = own_;
  farewell_.gave_up = 1;
  combine(farewell_, seat_.rank);
  say_to_all(farewell_, seat_, tag_);
}

}  // namespace offpath::mpi
