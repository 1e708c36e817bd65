// SPDX-License-Identifier: BSD-3-Clause
// What memory of this process windows have, until they are freed: the application's, which stays where it is as long as the
// native window may have registered it with a network card, and ours, which was lent for it.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <list>
#include <mutex>

namespace offpath::mpi {

class WindowMemory {
  struct Part {
    MPI_Win win;
    const void* base;
    MPI_Aint bytes;
    void* lent;  // nullptr: it is kept
  };

 public:
  using Parts = std::list<Part>;

  // Before the native library hears of it.
  void keep(const void* base, MPI_Aint bytes);
  // The same call's end: it belongs to the window now, or to none.
  void kept(bool belongs, MPI_Win win, const void* base, MPI_Aint bytes);
  void lent(MPI_Win win, void* memory);
  bool is_lent(MPI_Win win) const;
  // No longer of the window: what was kept at `base`.
  void detach(MPI_Win win, const void* base);
  // All of a window that is about to be freed: from then on another one may get its handle. Then let_go(), or, where it was not
  // freed, give_back().
  Parts take(MPI_Win win);
  static void let_go(const Parts& parts);
  void give_back(Parts& parts);

 private:
  void add(const Part& part);
  static void let_go(const Part& part);

  mutable std::mutex mutex_;  // a leaf
  Parts parts_;
};

}  // namespace offpath::mpi
