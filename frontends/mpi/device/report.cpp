// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <cstdio>

extern "C" __attribute__((visibility("hidden"))) int offpath_mpi_unserved(const char* name) {
  fprintf(stderr,
          "offpath error: %s is not served in target regions (the call returned MPI_ERR_UNSUPPORTED_OPERATION). Call "
          "it on the host; docs/guide-openmp-mpi.md lists what regions can call\n",
          name);
  return MPI_ERR_UNSUPPORTED_OPERATION;
}
