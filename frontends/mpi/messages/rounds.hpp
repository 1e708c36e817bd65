// SPDX-License-Identifier: BSD-3-Clause
// What is done between two looks at a message.
#pragma once

#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {

// Moves on what is under way, native communication included: others may wait for this process. Never waits.
inline void move_on() {
  offloader.progress();
  const Inside inside;
  int found = 0;
  native.Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, job.control(), &found, MPI_STATUS_IGNORE);
}

}  // namespace offpath::mpi
