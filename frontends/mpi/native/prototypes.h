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

#define OFFPATH_FROM const void*, MPI_Count, MPI_Datatype
#define OFFPATH_TO void*, MPI_Count, MPI_Datatype
#define OFFPATH_FROM_MANY const void*, const MPI_Count[], const MPI_Aint[], MPI_Datatype
#define OFFPATH_TO_MANY void*, const MPI_Count[], const MPI_Aint[], MPI_Datatype
#define OFFPATH_FROM_TYPED const void*, const MPI_Count[], const MPI_Aint[], const MPI_Datatype[]
#define OFFPATH_TO_TYPED void*, const MPI_Count[], const MPI_Aint[], const MPI_Datatype[]
#define OFFPATH_REDUCTION const void*, void*, MPI_Count, MPI_Datatype, MPI_Op

#define OFFPATH_FORMS(name, small_name, ...)                              \
  int MPI_I##small_name##_c(__VA_ARGS__, MPI_Comm, MPI_Request*);         \
  int MPI_##name##_init_c(__VA_ARGS__, MPI_Comm, MPI_Info, MPI_Request*); \
  int MPI_##name##_c(__VA_ARGS__, MPI_Comm);

OFFPATH_FORMS(Bcast, bcast, void*, MPI_Count, MPI_Datatype, int)
OFFPATH_FORMS(Gather, gather, OFFPATH_FROM, OFFPATH_TO, int)
OFFPATH_FORMS(Gatherv, gatherv, OFFPATH_FROM, OFFPATH_TO_MANY, int)
OFFPATH_FORMS(Scatter, scatter, OFFPATH_FROM, OFFPATH_TO, int)
OFFPATH_FORMS(Scatterv, scatterv, OFFPATH_FROM_MANY, OFFPATH_TO, int)
OFFPATH_FORMS(Allgather, allgather, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Allgatherv, allgatherv, OFFPATH_FROM, OFFPATH_TO_MANY)
OFFPATH_FORMS(Alltoall, alltoall, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Alltoallv, alltoallv, OFFPATH_FROM_MANY, OFFPATH_TO_MANY)
OFFPATH_FORMS(Alltoallw, alltoallw, OFFPATH_FROM_TYPED, OFFPATH_TO_TYPED)
OFFPATH_FORMS(Reduce, reduce, OFFPATH_REDUCTION, int)
OFFPATH_FORMS(Allreduce, allreduce, OFFPATH_REDUCTION)
OFFPATH_FORMS(Reduce_scatter, reduce_scatter, const void*, void*, const MPI_Count[], MPI_Datatype, MPI_Op)
OFFPATH_FORMS(Reduce_scatter_block, reduce_scatter_block, OFFPATH_REDUCTION)
OFFPATH_FORMS(Scan, scan, OFFPATH_REDUCTION)
OFFPATH_FORMS(Exscan, exscan, OFFPATH_REDUCTION)
OFFPATH_FORMS(Neighbor_allgather, neighbor_allgather, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Neighbor_allgatherv, neighbor_allgatherv, OFFPATH_FROM, OFFPATH_TO_MANY)
OFFPATH_FORMS(Neighbor_alltoall, neighbor_alltoall, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Neighbor_alltoallv, neighbor_alltoallv, OFFPATH_FROM_MANY, OFFPATH_TO_MANY)
OFFPATH_FORMS(Neighbor_alltoallw, neighbor_alltoallw, OFFPATH_FROM_TYPED, OFFPATH_TO_TYPED)

#define OFFPATH_AT int, MPI_Aint, MPI_Count, MPI_Datatype

#define OFFPATH_FORMS_REMOTE(name, small_name, ...) \
  int MPI_##name##_c(__VA_ARGS__, MPI_Win);         \
  int MPI_R##small_name##_c(__VA_ARGS__, MPI_Win, MPI_Request*);

OFFPATH_FORMS_REMOTE(Put, put, OFFPATH_FROM, OFFPATH_AT)
OFFPATH_FORMS_REMOTE(Get, get, OFFPATH_TO, OFFPATH_AT)
OFFPATH_FORMS_REMOTE(Accumulate, accumulate, OFFPATH_FROM, OFFPATH_AT, MPI_Op)
OFFPATH_FORMS_REMOTE(Get_accumulate, get_accumulate, OFFPATH_FROM, OFFPATH_TO, OFFPATH_AT, MPI_Op)

int MPI_Win_create_c(void*, MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, MPI_Win*);
int MPI_Win_allocate_c(MPI_Aint, MPI_Aint, MPI_Info, MPI_Comm, void*, MPI_Win*);

int MPI_Send_c(OFFPATH_FROM, int, int, MPI_Comm);
int MPI_Ssend_c(OFFPATH_FROM, int, int, MPI_Comm);
int MPI_Rsend_c(OFFPATH_FROM, int, int, MPI_Comm);
int MPI_Isend_c(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int MPI_Issend_c(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int MPI_Irsend_c(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int MPI_Send_init_c(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int MPI_Ssend_init_c(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int MPI_Recv_c(OFFPATH_TO, int, int, MPI_Comm, MPI_Status*);
int MPI_Irecv_c(OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int MPI_Recv_init_c(OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int MPI_Mrecv_c(OFFPATH_TO, MPI_Message*, MPI_Status*);
int MPI_Imrecv_c(OFFPATH_TO, MPI_Message*, MPI_Request*);
int MPI_Sendrecv_c(OFFPATH_FROM, int, int, OFFPATH_TO, int, int, MPI_Comm, MPI_Status*);
int MPI_Sendrecv_replace_c(OFFPATH_TO, int, int, int, int, MPI_Comm, MPI_Status*);
int MPI_Isendrecv_c(OFFPATH_FROM, int, int, OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int MPI_Isendrecv_replace_c(OFFPATH_TO, int, int, int, int, MPI_Comm, MPI_Request*);
#ifndef OFFPATH_MPI_HAS_ISENDRECV
int MPI_Isendrecv(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Isendrecv_replace(void*, int, MPI_Datatype, int, int, int, int, MPI_Comm, MPI_Request*);
#endif

#undef OFFPATH_FROM
#undef OFFPATH_TO
#undef OFFPATH_FROM_MANY
#undef OFFPATH_TO_MANY
#undef OFFPATH_FROM_TYPED
#undef OFFPATH_TO_TYPED
#undef OFFPATH_REDUCTION
#undef OFFPATH_FORMS
#undef OFFPATH_AT
#undef OFFPATH_FORMS_REMOTE

#ifdef __cplusplus
}
#endif
#endif
#endif
