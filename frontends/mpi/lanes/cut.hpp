// SPDX-License-Identifier: BSD-3-Clause
// How the ranks of a lane agree what becomes of its operations after a service was lost (docs/design/0044-recovery.md).
//
// Every rank says one word to every other, once it knows of the loss (from its service, or from another's word): of which
// operations it has told its program the end. The words are sent once and never changed, so all ranks decide from the same
// ones: what nobody has told is done again, natively, by all that have a part in it, also where a living service still
// finishes it after the word was said. What somebody has told stands: its inputs may be gone.
// A rank that waits for the words longer than the configured time gives up and says so: all ranks then fail what is
// left.
//
// Threads: under the offloader's lock.
#pragma once

#include "attach/loss.hpp"
#include "mpi/lanes/tags.hpp"
#include "mpi/lanes/told.hpp"
#include "mpi/lanes/words.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

namespace offpath::mpi {

using attach::Parting;

struct Word {
  Told told;
  uint64_t next = 0;  // the number of the first operation that it has not been asked for
  uint64_t gave_up = 0;
  uint64_t own_lost = 0;  // who says it has lost its own service, and has warned of it
  Parting parting;
};

class Cut {
 public:
  using Clock = std::chrono::steady_clock;

  // `loss`: of the lane, from 0.
  Cut(const Seat& seat, uint64_t loss) : seat_(seat), tag_(loss_tag(loss, 0)) {}
  // Where words are said, if it was not known. Before all else.
  void sit(MPI_Comm comm) { seat_.comm = comm; }

  // Receives what has arrived. MPI error code of the library's. May throw bad_alloc.
  int listen();
  // Some word was heard.
  bool begun() const { return heard_count_ > 0; }
  // Says our own word. Once. May throw bad_alloc.
  void say(const Word& own, Clock::time_point now);
  void give_up();

  bool said() const { return said_; }
  bool decided() const { return said_ && heard_count_ == seat_.size - 1; }
  bool given_up() const { return combined_.gave_up != 0; }
  bool late(Clock::time_point now, Clock::duration limit) const { return said_ && !decided() && now - since_ > limit; }
  // Once decided: whether anybody, or that rank, had told its program of it.
  bool told(uint64_t sequence) const { return combined_.told.has(sequence); }
  bool told_by(uint32_t rank, uint64_t sequence) const { return told_[rank].has(sequence); }
  // Once decided: no rank had been asked for that operation, or a later one, when it said its word.
  uint64_t next() const { return combined_.next; }
  // The losses that ranks have told.
  const Word& heard() const { return combined_; }

 private:
  void combine(const Word& word, int source);

  Seat seat_;
  int tag_;
  bool said_ = false;
  int heard_count_ = 0;
  std::vector<bool> heard_;  // by rank, as the next one; empty: nothing so far
  std::vector<Told> told_;
  Clock::time_point since_{};
  Word own_;
  Word farewell_;
  Word combined_;
};

}  // namespace offpath::mpi
