/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The MPI standard's own ABI (MPI 5.0, chapter 20), as far as the back end for it speaks it: no MPI is needed to build against
 * it. test_standard_abi.py compares it with the header that a library brings.
 */
#ifndef OFFPATH_FRONTENDS_MPI_ABI_MPI_H
#define OFFPATH_FRONTENDS_MPI_ABI_MPI_H

#define OFFPATH_MPI_HAS_LARGE_COUNTS
#define OFFPATH_MPI_HAS_PERSISTENT
#define OFFPATH_MPI_HAS_ISENDRECV
#define OFFPATH_MPI_HAS_REQUEST_STATUSES

#ifdef __cplusplus
extern "C" {
#endif
#include "mpi/abi/constants.h"
#include "mpi/abi/functions.h"
#ifdef __cplusplus
}
#endif
#endif
