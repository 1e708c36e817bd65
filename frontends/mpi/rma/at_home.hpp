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
#include <span>
#include <unordered_map>

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

  // May throw bad_alloc.
  void take(Letter question) { asked_.push_back(std::move(question)); }
  void serve(Letters& letters);

 private:
  void answer(const Letter& question, Letters& letters);
  void lock(const Letter& question, Letters& letters);

  ops::onesided::Home home_;
  bool serves_ = false;
  std::deque<Letter> asked_;
  std::unordered_map<int, uint64_t> locking_;  // by member: the question after a lock that is not granted yet
};

}  // namespace offpath::mpi
