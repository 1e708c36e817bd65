/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Those functions of the standard's ABI that mpi_functions.def and natives.def name.
 */
#ifndef OFFPATH_FRONTENDS_MPI_ABI_FUNCTIONS_H
#define OFFPATH_FRONTENDS_MPI_ABI_FUNCTIONS_H

#include "mpi/abi/constants.h"

typedef int(MPI_Comm_copy_attr_function)(MPI_Comm, int, void*, void*, void*, int*);
typedef int(MPI_Comm_delete_attr_function)(MPI_Comm, int, void*, void*);
typedef int(MPI_Grequest_query_function)(void*, MPI_Status*);
typedef int(MPI_Grequest_free_function)(void*);
typedef int(MPI_Grequest_cancel_function)(void*, int);

#define OFFPATH_NAME(name) MPI_##name
#define OFFPATH_COUNT int
#define OFFPATH_DISPLACEMENT int
#include "mpi/abi/counted.h"
#define OFFPATH_NAME(name) MPI_##name##_c
#define OFFPATH_COUNT MPI_Count
#define OFFPATH_DISPLACEMENT MPI_Aint
#include "mpi/abi/counted.h"

/* The whole life. */
int MPI_Init(int*, char***);
int MPI_Init_thread(int*, char***, int, int*);
int MPI_Initialized(int*);
int MPI_Query_thread(int*);
int MPI_Finalize(void);
int MPI_Abort(MPI_Comm, int);

/* Errors. */
int MPI_Add_error_class(int*);
int MPI_Add_error_code(int, int*);
int MPI_Add_error_string(int, const char*);
int MPI_Error_class(int, int*);
int MPI_Error_string(int, char*, int*);
int MPI_Errhandler_free(MPI_Errhandler*);

/* Communicators and groups. */
int MPI_Comm_call_errhandler(MPI_Comm, int);
int MPI_Comm_compare(MPI_Comm, MPI_Comm, int*);
int MPI_Comm_create(MPI_Comm, MPI_Group, MPI_Comm*);
int MPI_Comm_create_group(MPI_Comm, MPI_Group, int, MPI_Comm*);
int MPI_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*, int*, void*);
int MPI_Comm_delete_attr(MPI_Comm, int);
int MPI_Comm_disconnect(MPI_Comm*);
int MPI_Comm_dup(MPI_Comm, MPI_Comm*);
int MPI_Comm_dup_with_info(MPI_Comm, MPI_Info, MPI_Comm*);
int MPI_Comm_free(MPI_Comm*);
int MPI_Comm_free_keyval(int*);
int MPI_Comm_get_attr(MPI_Comm, int, void*, int*);
int MPI_Comm_get_errhandler(MPI_Comm, MPI_Errhandler*);
int MPI_Comm_get_name(MPI_Comm, char*, int*);
int MPI_Comm_group(MPI_Comm, MPI_Group*);
int MPI_Comm_idup(MPI_Comm, MPI_Comm*, MPI_Request*);
int MPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_remote_size(MPI_Comm, int*);
int MPI_Comm_set_attr(MPI_Comm, int, void*);
int MPI_Comm_set_errhandler(MPI_Comm, MPI_Errhandler);
int MPI_Comm_set_info(MPI_Comm, MPI_Info);
int MPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm*);
int MPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm*);
int MPI_Comm_test_inter(MPI_Comm, int*);
int MPI_Intercomm_create(MPI_Comm, int, MPI_Comm, int, int, MPI_Comm*);
int MPI_Intercomm_merge(MPI_Comm, int, MPI_Comm*);
int MPI_Group_free(MPI_Group*);
int MPI_Group_incl(MPI_Group, int, const int[], MPI_Group*);
int MPI_Group_size(MPI_Group, int*);
int MPI_Group_translate_ranks(MPI_Group, int, const int[], MPI_Group, int[]);
int MPI_Info_get(MPI_Info, const char*, int, char*, int*);
int MPI_Info_get_nkeys(MPI_Info, int*);

/* Topologies. */
int MPI_Cart_create(MPI_Comm, int, const int[], const int[], int, MPI_Comm*);
int MPI_Cart_get(MPI_Comm, int, int[], int[], int[]);
int MPI_Cart_shift(MPI_Comm, int, int, int*, int*);
int MPI_Cart_sub(MPI_Comm, const int[], MPI_Comm*);
int MPI_Cartdim_get(MPI_Comm, int*);
int MPI_Dist_graph_create(MPI_Comm, int, const int[], const int[], const int[], const int*, MPI_Info, int, MPI_Comm*);
int MPI_Dist_graph_create_adjacent(MPI_Comm, int, const int[], const int*, int, const int[], const int*, MPI_Info, int,
                                   MPI_Comm*);
int MPI_Dist_graph_neighbors(MPI_Comm, int, int[], int*, int, int[], int*);
int MPI_Dist_graph_neighbors_count(MPI_Comm, int*, int*, int*);
int MPI_Graph_create(MPI_Comm, int, const int[], const int[], int, MPI_Comm*);
int MPI_Graph_get(MPI_Comm, int, int, int[], int[]);
int MPI_Graph_neighbors(MPI_Comm, int, int, int[]);
int MPI_Graph_neighbors_count(MPI_Comm, int, int*);
int MPI_Graphdims_get(MPI_Comm, int*, int*);
int MPI_Topo_test(MPI_Comm, int*);

/* Requests and statuses. */
int MPI_Cancel(MPI_Request*);
int MPI_Grequest_complete(MPI_Request);
int MPI_Grequest_start(MPI_Grequest_query_function*, MPI_Grequest_free_function*, MPI_Grequest_cancel_function*, void*,
                       MPI_Request*);
int MPI_Request_free(MPI_Request*);
int MPI_Request_get_status(MPI_Request, int*, MPI_Status*);
int MPI_Request_get_status_all(int, const MPI_Request[], int*, MPI_Status[]);
int MPI_Request_get_status_any(int, const MPI_Request[], int*, int*, MPI_Status*);
int MPI_Request_get_status_some(int, const MPI_Request[], int*, int[], MPI_Status[]);
int MPI_Start(MPI_Request*);
int MPI_Startall(int, MPI_Request[]);
int MPI_Test(MPI_Request*, int*, MPI_Status*);
int MPI_Testall(int, MPI_Request[], int*, MPI_Status[]);
int MPI_Testany(int, MPI_Request[], int*, int*, MPI_Status*);
int MPI_Testsome(int, MPI_Request[], int*, int[], MPI_Status[]);
int MPI_Wait(MPI_Request*, MPI_Status*);
int MPI_Waitall(int, MPI_Request[], MPI_Status[]);
int MPI_Waitany(int, MPI_Request[], int*, MPI_Status*);
int MPI_Waitsome(int, MPI_Request[], int*, int[], MPI_Status[]);
int MPI_Get_count(const MPI_Status*, MPI_Datatype, int*);
int MPI_Status_set_cancelled(MPI_Status*, int);
int MPI_Status_set_elements(MPI_Status*, MPI_Datatype, int);
int MPI_Status_set_elements_x(MPI_Status*, MPI_Datatype, MPI_Count);

/* Messages: what counted.h has not. */
int MPI_Bsend(const void*, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Bsend_init(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Ibsend(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Rsend_init(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Probe(int, int, MPI_Comm, MPI_Status*);
int MPI_Iprobe(int, int, MPI_Comm, int*, MPI_Status*);
int MPI_Mprobe(int, int, MPI_Comm, MPI_Message*, MPI_Status*);
int MPI_Improbe(int, int, MPI_Comm, int*, MPI_Message*, MPI_Status*);

/* Collectives: likewise. */
int MPI_Barrier(MPI_Comm);
int MPI_Ibarrier(MPI_Comm, MPI_Request*);
int MPI_Barrier_init(MPI_Comm, MPI_Info, MPI_Request*);

/* Datatypes. */
int MPI_Pack(const void*, int, MPI_Datatype, void*, int, int*, MPI_Comm);
int MPI_Pack_size(int, MPI_Datatype, MPI_Comm, int*);
int MPI_Unpack(const void*, int, int*, void*, int, MPI_Datatype, MPI_Comm);
int MPI_Type_commit(MPI_Datatype*);
int MPI_Type_contiguous(int, MPI_Datatype, MPI_Datatype*);
int MPI_Type_create_hindexed(int, const int[], const MPI_Aint[], MPI_Datatype, MPI_Datatype*);
int MPI_Type_create_resized(MPI_Datatype, MPI_Aint, MPI_Aint, MPI_Datatype*);
int MPI_Type_create_struct(int, const int[], const MPI_Aint[], const MPI_Datatype[], MPI_Datatype*);
int MPI_Type_free(MPI_Datatype*);
int MPI_Type_get_contents(MPI_Datatype, int, int, int, int[], MPI_Aint[], MPI_Datatype[]);
int MPI_Type_get_contents_c(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int[], MPI_Aint[], MPI_Count[],
                            MPI_Datatype[]);
int MPI_Type_get_envelope(MPI_Datatype, int*, int*, int*, int*);
int MPI_Type_get_envelope_c(MPI_Datatype, MPI_Count*, MPI_Count*, MPI_Count*, MPI_Count*, int*);
int MPI_Type_get_extent(MPI_Datatype, MPI_Aint*, MPI_Aint*);
int MPI_Type_size_x(MPI_Datatype, MPI_Count*);

/* Memory and windows. */
int MPI_Alloc_mem(MPI_Aint, MPI_Info, void*);
int MPI_Free_mem(void*);
int MPI_Compare_and_swap(const void*, const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Win);
int MPI_Fetch_and_op(const void*, void*, MPI_Datatype, int, MPI_Aint, MPI_Op, MPI_Win);
int MPI_Win_allocate_shared(MPI_Aint, int, MPI_Info, MPI_Comm, void*, MPI_Win*);
int MPI_Win_attach(MPI_Win, void*, MPI_Aint);
int MPI_Win_call_errhandler(MPI_Win, int);
int MPI_Win_complete(MPI_Win);
int MPI_Win_create_dynamic(MPI_Info, MPI_Comm, MPI_Win*);
int MPI_Win_detach(MPI_Win, const void*);
int MPI_Win_fence(int, MPI_Win);
int MPI_Win_flush(int, MPI_Win);
int MPI_Win_flush_all(MPI_Win);
int MPI_Win_flush_local(int, MPI_Win);
int MPI_Win_flush_local_all(MPI_Win);
int MPI_Win_free(MPI_Win*);
int MPI_Win_get_attr(MPI_Win, int, void*, int*);
int MPI_Win_get_errhandler(MPI_Win, MPI_Errhandler*);
int MPI_Win_lock(int, int, int, MPI_Win);
int MPI_Win_lock_all(int, MPI_Win);
int MPI_Win_post(MPI_Group, int, MPI_Win);
int MPI_Win_set_errhandler(MPI_Win, MPI_Errhandler);
int MPI_Win_set_info(MPI_Win, MPI_Info);
int MPI_Win_start(MPI_Group, int, MPI_Win);
int MPI_Win_sync(MPI_Win);
int MPI_Win_test(MPI_Win, int*);
int MPI_Win_unlock(int, MPI_Win);
int MPI_Win_unlock_all(MPI_Win);
int MPI_Win_wait(MPI_Win);

/* Files: what counted.h has not. */
int MPI_File_call_errhandler(MPI_File, int);
int MPI_File_open(MPI_Comm, const char*, int, MPI_Info, MPI_File*);
int MPI_File_close(MPI_File*);
int MPI_File_get_position(MPI_File, MPI_Offset*);
int MPI_File_get_size(MPI_File, MPI_Offset*);
int MPI_File_preallocate(MPI_File, MPI_Offset);
int MPI_File_seek(MPI_File, MPI_Offset, int);
int MPI_File_set_atomicity(MPI_File, int);
int MPI_File_set_size(MPI_File, MPI_Offset);
int MPI_File_set_view(MPI_File, MPI_Offset, MPI_Datatype, MPI_Datatype, const char*, MPI_Info);
int MPI_File_sync(MPI_File);
int MPI_File_read_all_end(MPI_File, void*, MPI_Status*);
int MPI_File_read_at_all_end(MPI_File, void*, MPI_Status*);
int MPI_File_write_all_end(MPI_File, const void*, MPI_Status*);
int MPI_File_write_at_all_end(MPI_File, const void*, MPI_Status*);

#endif
