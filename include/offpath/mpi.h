/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Operations of Offpath, tasks included, as requests of MPI: MPI_Wait, MPI_Testsome and all others of their kind complete them, in one
 * array with requests of MPI's own. For any MPI, as this is compiled with the program's mpi.h; link the program with liboffpath.
 */
#ifndef OFFPATH_MPI_H
#define OFFPATH_MPI_H

#include <offpath/offpath.h>

#include <mpi.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct offpath_mpi_state {
  MPI_Request request;
  offpath_op_t* op;
  offpath_status_t status;
} offpath_mpi_state_t;

static inline int offpath_mpi_query(void* argument, MPI_Status* status) {
  const offpath_mpi_state_t* state = (const offpath_mpi_state_t*)argument;
  MPI_Status_set_elements(status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(status, state->status == OFFPATH_ERR_CANCELLED);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return state->status == OFFPATH_OK || state->status == OFFPATH_ERR_CANCELLED ? MPI_SUCCESS : MPI_ERR_OTHER;
}

static inline int offpath_mpi_free(void* argument) {
  free(argument);
  return MPI_SUCCESS;
}

static inline int offpath_mpi_cancel(void* argument, int complete) {
  if (!complete) offpath_task_cancel(((const offpath_mpi_state_t*)argument)->op); /* refused of what is no task */
  return MPI_SUCCESS;
}

static inline void offpath_mpi_told(void* argument, offpath_status_t status) {
  offpath_mpi_state_t* state = (offpath_mpi_state_t*)argument;
  const MPI_Request request = state->request;
  state->status = status;
  MPI_Grequest_complete(request); /* who waits may free the state from here on */
}

/* Makes a request that is complete when the operation has ended. If that failed, the call that completes the request returns
 * MPI_ERR_OTHER (or its error handler is called), and offpath_op_wait(op, 0) says how. MPI_Cancel cancels a task.
 * Returns   OFFPATH_OK · OFFPATH_ERR_STATE (MPI was not initialised with MPI_THREAD_MULTIPLE, which a thread that completes requests
 *           needs, or has no request) · OFFPATH_ERR_NO_MEMORY · those of offpath_op_notify. *request is MPI_REQUEST_NULL then
 * Ownership the op stays the caller's, who frees it after the request is complete. The session is detached after that, too. */
static inline offpath_status_t offpath_mpi_request(offpath_op_t* op, MPI_Request* request) {
  int level = MPI_THREAD_SINGLE;
  *request = MPI_REQUEST_NULL;
  if (MPI_Query_thread(&level) != MPI_SUCCESS || level < MPI_THREAD_MULTIPLE) return OFFPATH_ERR_STATE;
  offpath_mpi_state_t* state = (offpath_mpi_state_t*)malloc(sizeof(*state));
  if (state == NULL) return OFFPATH_ERR_NO_MEMORY;
  state->op = op;
  state->status = OFFPATH_IN_PROGRESS;
  if (MPI_Grequest_start(offpath_mpi_query, offpath_mpi_free, offpath_mpi_cancel, state, &state->request) !=
      MPI_SUCCESS) {
    free(state);
    return OFFPATH_ERR_STATE;
  }
  *request = state->request;
  const offpath_status_t status = offpath_op_notify(op, offpath_mpi_told, state);
  if (status != OFFPATH_OK) { /* nobody will: it is ended here */
    state->status = OFFPATH_OK;
    MPI_Grequest_complete(*request);
    MPI_Wait(request, MPI_STATUS_IGNORE);
  }
  return status;
}

/* The same with Fortran's handle, for a procedure that is called from there. */
static inline offpath_status_t offpath_mpi_request_f(offpath_op_t* op, MPI_Fint* request) {
  MPI_Request made;
  const offpath_status_t status = offpath_mpi_request(op, &made);
  *request = MPI_Request_c2f(made);
  return status;
}

#ifdef __cplusplus
}
#endif

#endif
