/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of MPI 4 and 4.1 in mpi_functions.def, for a header that lacks them. Where the library has none either,
 * programs that look for them at run time find ours (substitutes.hpp). And its extensions, which only libraries have that let
 * programs go on without a lost process.
 */
#ifndef OFFPATH_FRONTENDS_MPI_NATIVE_PROTOTYPES_H
#define OFFPATH_FRONTENDS_MPI_NATIVE_PROTOTYPES_H

#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef OFFPATH_MPI_HAS_LARGE_COUNTS
#define OFFPATH_NAME(name) MPI_##name##_c
#define OFFPATH_COUNT MPI_Count
#define OFFPATH_DISPLACEMENT MPI_Aint
#include "mpi/abi/counted.h"

#ifndef OFFPATH_MPI_HAS_ISENDRECV
int MPI_Isendrecv(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Isendrecv_replace(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*);
#endif
#endif

#ifndef OFFPATH_MPI_HAS_REQUEST_STATUSES
int MPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status[]);
int MPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int MPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status[]);
#endif

int MPIX_Comm_revoke(MPI_Comm);
int MPIX_Comm_shrink(MPI_Comm, MPI_Comm*);

#ifdef __cplusplus
}
#endif
#endif
