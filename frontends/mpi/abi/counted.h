/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions of mpi_functions.def that MPI has twice: with counts of int, and as MPI_X_c with MPI_Count. Who includes this
 * says which:
 *   OFFPATH_NAME(name)    the function's name
 *   OFFPATH_COUNT         int or MPI_Count
 *   OFFPATH_DISPLACEMENT  int or MPI_Aint: displacements in vectors, and units of windows
 * All three are undefined at the end.
 */
#define OFFPATH_FROM const void*, OFFPATH_COUNT, MPI_Datatype
#define OFFPATH_TO void*, OFFPATH_COUNT, MPI_Datatype
#define OFFPATH_FROM_MANY const void*, const OFFPATH_COUNT[], const OFFPATH_DISPLACEMENT[], MPI_Datatype
#define OFFPATH_TO_MANY void*, const OFFPATH_COUNT[], const OFFPATH_DISPLACEMENT[], MPI_Datatype
#define OFFPATH_FROM_TYPED const void*, const OFFPATH_COUNT[], const OFFPATH_DISPLACEMENT[], const MPI_Datatype[]
#define OFFPATH_TO_TYPED void*, const OFFPATH_COUNT[], const OFFPATH_DISPLACEMENT[], const MPI_Datatype[]
#define OFFPATH_REDUCTION const void*, void*, OFFPATH_COUNT, MPI_Datatype, MPI_Op

#define OFFPATH_FORMS(name, small_name, ...)                                    \
  int OFFPATH_NAME(I##small_name)(__VA_ARGS__, MPI_Comm, MPI_Request*);         \
  int OFFPATH_NAME(name##_init)(__VA_ARGS__, MPI_Comm, MPI_Info, MPI_Request*); \
  int OFFPATH_NAME(name)(__VA_ARGS__, MPI_Comm);

OFFPATH_FORMS(Bcast, bcast, void*, OFFPATH_COUNT, MPI_Datatype, int)
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
OFFPATH_FORMS(Reduce_scatter, reduce_scatter, const void*, void*, const OFFPATH_COUNT[], MPI_Datatype, MPI_Op)
OFFPATH_FORMS(Reduce_scatter_block, reduce_scatter_block, OFFPATH_REDUCTION)
OFFPATH_FORMS(Scan, scan, OFFPATH_REDUCTION)
OFFPATH_FORMS(Exscan, exscan, OFFPATH_REDUCTION)
OFFPATH_FORMS(Neighbor_allgather, neighbor_allgather, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Neighbor_allgatherv, neighbor_allgatherv, OFFPATH_FROM, OFFPATH_TO_MANY)
OFFPATH_FORMS(Neighbor_alltoall, neighbor_alltoall, OFFPATH_FROM, OFFPATH_TO)
OFFPATH_FORMS(Neighbor_alltoallv, neighbor_alltoallv, OFFPATH_FROM_MANY, OFFPATH_TO_MANY)
OFFPATH_FORMS(Neighbor_alltoallw, neighbor_alltoallw, const void*, const OFFPATH_COUNT[], const MPI_Aint[],
              const MPI_Datatype[], void*, const OFFPATH_COUNT[], const MPI_Aint[], const MPI_Datatype[])

#define OFFPATH_AT int, MPI_Aint, OFFPATH_COUNT, MPI_Datatype

#define OFFPATH_FORMS_REMOTE(name, small_name, ...) \
  int OFFPATH_NAME(name)(__VA_ARGS__, MPI_Win);     \
  int OFFPATH_NAME(R##small_name)(__VA_ARGS__, MPI_Win, MPI_Request*);

OFFPATH_FORMS_REMOTE(Put, put, OFFPATH_FROM, OFFPATH_AT)
OFFPATH_FORMS_REMOTE(Get, get, OFFPATH_TO, OFFPATH_AT)
OFFPATH_FORMS_REMOTE(Accumulate, accumulate, OFFPATH_FROM, OFFPATH_AT, MPI_Op)
OFFPATH_FORMS_REMOTE(Get_accumulate, get_accumulate, OFFPATH_FROM, OFFPATH_TO, OFFPATH_AT, MPI_Op)

int OFFPATH_NAME(Win_create)(void*, MPI_Aint, OFFPATH_DISPLACEMENT, MPI_Info, MPI_Comm, MPI_Win*);
int OFFPATH_NAME(Win_allocate)(MPI_Aint, OFFPATH_DISPLACEMENT, MPI_Info, MPI_Comm, void*, MPI_Win*);

int OFFPATH_NAME(Send)(OFFPATH_FROM, int, int, MPI_Comm);
int OFFPATH_NAME(Ssend)(OFFPATH_FROM, int, int, MPI_Comm);
int OFFPATH_NAME(Rsend)(OFFPATH_FROM, int, int, MPI_Comm);
int OFFPATH_NAME(Isend)(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Issend)(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Irsend)(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Send_init)(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Ssend_init)(OFFPATH_FROM, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Recv)(OFFPATH_TO, int, int, MPI_Comm, MPI_Status*);
int OFFPATH_NAME(Irecv)(OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Recv_init)(OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Mrecv)(OFFPATH_TO, MPI_Message*, MPI_Status*);
int OFFPATH_NAME(Imrecv)(OFFPATH_TO, MPI_Message*, MPI_Request*);
int OFFPATH_NAME(Sendrecv)(OFFPATH_FROM, int, int, OFFPATH_TO, int, int, MPI_Comm, MPI_Status*);
int OFFPATH_NAME(Sendrecv_replace)(OFFPATH_TO, int, int, int, int, MPI_Comm, MPI_Status*);
int OFFPATH_NAME(Isendrecv)(OFFPATH_FROM, int, int, OFFPATH_TO, int, int, MPI_Comm, MPI_Request*);
int OFFPATH_NAME(Isendrecv_replace)(OFFPATH_TO, int, int, int, int, MPI_Comm, MPI_Request*);

#define OFFPATH_FORMS_FILE(name, ...)                                        \
  int OFFPATH_NAME(File_i##name)(MPI_File, __VA_ARGS__, MPI_Request*);       \
  int OFFPATH_NAME(File_i##name##_all)(MPI_File, __VA_ARGS__, MPI_Request*); \
  int OFFPATH_NAME(File_##name##_all_begin)(MPI_File, __VA_ARGS__);

OFFPATH_FORMS_FILE(read, OFFPATH_TO)
OFFPATH_FORMS_FILE(read_at, MPI_Offset, OFFPATH_TO)
OFFPATH_FORMS_FILE(write, OFFPATH_FROM)
OFFPATH_FORMS_FILE(write_at, MPI_Offset, OFFPATH_FROM)
int OFFPATH_NAME(File_read)(MPI_File, OFFPATH_TO, MPI_Status*);
int OFFPATH_NAME(File_read_all)(MPI_File, OFFPATH_TO, MPI_Status*);
int OFFPATH_NAME(File_write)(MPI_File, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_all)(MPI_File, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_at)(MPI_File, MPI_Offset, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_at_all)(MPI_File, MPI_Offset, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_shared)(MPI_File, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_ordered)(MPI_File, OFFPATH_FROM, MPI_Status*);
int OFFPATH_NAME(File_write_ordered_begin)(MPI_File, OFFPATH_FROM);
int OFFPATH_NAME(File_iwrite_shared)(MPI_File, OFFPATH_FROM, MPI_Request*);

#undef OFFPATH_NAME
#undef OFFPATH_COUNT
#undef OFFPATH_DISPLACEMENT
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
#undef OFFPATH_FORMS_FILE
