// SPDX-License-Identifier: BSD-3-Clause
// This process's own part of a window, as it serves it itself once the window has left the services: the questions that
// have come, and their answers. Until the part's service has let go of it they wait.
//
// Threads: one at a time. What sends: Inside.
#pragma once

#include "mpi/rma/letters.hpp"
#include "ops/onesided/home.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace offpath::mpi {

class AtHome {
 public:
  using Held = ops::onesided::Home::Held;

  // `base`: of a window that is not dynamic.
  AtHome(int size, bool dynamic, const void* base, uint64_t bytes);

  bool attach(const void* base, uint64_t bytes);
  bool detach(const void* base);

  // As of Home. Questions are answered from then on.
  void take_over(std::span<uint8_t> journal);
  bool serves() const { return serves_; }
  void note_held(int from, Held held) { home_.note_held(static_cast<uint32_t>(from), held); }
  void forget(int member);

  // Both may throw bad_alloc: then a later call goes on with the same question.
  void take(Letter& question) { asked_.push_back(std::move(question)); }
  void serve(Letters& letters);

 private:
  struct Answer {
    Letter::Head head;
    std::vector<uint8_t> bytes;
  };
  struct Locking {
    uint64_t question = 0;
    bool is_granted = false;  // and has not been told
  };

  std::optional<Answer> answer_to(const Letter& question);  // nothing: later
  Answer carry_out(const Letter& question);
  std::optional<Answer> lock(const Letter& question);

  ops::onesided::Home home_;
  bool serves_ = false;
  std::deque<Letter> asked_;
  std::optional<Answer> answer_;              // to the first of them, until it is sent
  std::unordered_map<int, Locking> locking_;  // by member
};

}  // namespace offpath::mpi
