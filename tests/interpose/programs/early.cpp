// SPDX-License-Identifier: BSD-3-Clause
// MPI called from a static constructor, before preloaded libraries may have had theirs, and after MPI_Finalize.
#include <mpi.h>

#include <cerrno>
#include <cstdio>

struct Early {
  int initialized = -1;
  int waited = -1;
  int kept_errno = 0;
  Early() {
    MPI_Initialized(&initialized);
    errno = 5;
    // An intercepted function, which MPI allows after MPI_Init only; null requests do no harm.
    MPI_Request none = MPI_REQUEST_NULL;
    if (initialized) waited = MPI_Wait(&none, MPI_STATUS_IGNORE);
    kept_errno = errno;
  }
};
static Early early;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) std::printf("initialized early: %d, errno %d\n", early.initialized, early.kept_errno);
  MPI_Finalize();
  int finalized = 0;
  int initialized = 0;
  MPI_Finalized(&finalized);
  MPI_Initialized(&initialized);
  if (rank == 0) std::printf("finalized: %d, initialized: %d\n", finalized, initialized);
  return 3;  // an exit status to be kept
}
