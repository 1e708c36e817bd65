// SPDX-License-Identifier: BSD-3-Clause
// What memory of this process windows have, until they are freed: the application's, which stays where it is as long as the
// native window may have registered it with a network card, and ours, which was lent for it.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <mutex>
#include <vector>

namespace offpath::mpi {

class WindowMemory {
 public:
  // Before the native library hears of it.
  void keep(const void* base, MPI_Aint bytes);
  // The same call's end: it belongs to the window now, or to none.
  void kept(int code, MPI_Win win, const void* base, MPI_Aint bytes);
  void lent(MPI_Win win, void* memory);
  bool is_lent(MPI_Win win) const;
  // No longer of the window: what was kept at `base`, or all.
  void detach(MPI_Win win, const void* base);
  void free(MPI_Win win);

 private:
  struct Part {
    MPI_Win win;
    const void* base;
    MPI_Aint bytes;
    void* lent;  // nullptr: it is kept
  };
  void add(const Part& part);
  static void let_go(const Part& part);

  mutable std::mutex mutex_;  // a leaf
  std::vector<Part> parts_;
};

}  // namespace offpath::mpi
