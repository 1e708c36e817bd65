// SPDX-License-Identifier: BSD-3-Clause
// mpi.h for target regions: the MPI's own, whose handles may be addresses of objects, declared for devices as well.
#pragma omp declare target
#include_next <mpi.h>
#pragma omp end declare target
