/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Weak definitions of all functions of MPI: a call that regions are not served with is an error with a clear line, not
 * an image that cannot be loaded. What is served is defined elsewhere in this library, strongly. */
#include <stdio.h>

int offpath_mpi_unserved(const char* name);

#define OFFPATH_MPI_PASSED_ON(name) \
  __attribute__((weak)) int MPI_##name(void) { return offpath_mpi_unserved("MPI_" #name); }
#define OFFPATH_MPI_FUNCTION(name, waits, seen) OFFPATH_MPI_PASSED_ON(name)
#include <offpath/words/mpi_functions.def>
#include <offpath/words/mpi_others.def>
