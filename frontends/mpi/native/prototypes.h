/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The large-count functions of mpi_functions.def, for a header that lacks them. Such a library has none of them; programs that
 * look for them at run time find ours (substitutes.hpp).
 */
#ifndef OFFPATH_FRONTENDS_MPI_NATIVE_PROTOTYPES_H
#define OFFPATH_FRONTENDS_MPI_NATIVE_PROTOTYPES_H

#include <mpi.h>

#ifndef OFFPATH_MPI_HAS_LARGE_COUNTS
#ifdef __cplusplus
extern "C" {
#endif

#define OFFPATH_NAME(name) MPI_##name##_c
#define OFFPATH_COUNT MPI_Count
#define OFFPATH_DISPLACEMENT MPI_Aint
#include "mpi/abi/counted.h"

#ifndef OFFPATH_MPI_HAS_ISENDRECV
int MPI_Isendrecv(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Isendrecv_replace(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*);
#endif

#ifdef __cplusplus
}
#endif
#endif
#endif
