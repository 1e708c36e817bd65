// SPDX-License-Identifier: BSD-3-Clause
// Tasks as requests of MPI, in one array with a message: all kinds of completion, failures, cancelling, Fortran's handles.
// argv[1]: the functions. OK, or a line that says what was wrong.
#include <offpath/mpi.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define REQUIRE(truth)                                            \
  do {                                                            \
    if (!(truth)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #truth); \
      MPI_Abort(MPI_COMM_WORLD, 1);                               \
    }                                                             \
  } while (0)

static offpath_session_t* session;

static offpath_function_t* function(const char* library, const char* symbol) {
  const offpath_function_params_t params = {sizeof(params), 0, library, symbol, NULL};
  offpath_function_t* found = NULL;
  offpath_error_t error = {0};
  if (offpath_function_register(session, &params, &found, &error) != OFFPATH_OK) fprintf(stderr, "%s\n", error.text);
  REQUIRE(found != NULL);
  return found;
}

static offpath_op_t* submit(offpath_function_t* of, const void* argument, uint64_t bytes, offpath_task_range_t* range) {
  offpath_task_params_t params = {
      .struct_bytes = sizeof(params), .function = of, .argument = argument, .argument_bytes = bytes};
  params.ranges = range;
  params.ranges_count = range == NULL ? 0 : 1;
  offpath_op_t* op = NULL;
  REQUIRE(offpath_task_submit(session, &params, &op) == OFFPATH_OK);
  return op;
}

int main(int argc, char** argv) {
  int level = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, argc > 2 ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  offpath_attach_params_t attach = {.struct_bytes = sizeof(attach), .flags = OFFPATH_ATTACH_NODE_ONLY};
  const pid_t process = getpid();
  memcpy(attach.job_token, &process, sizeof(process));
  attach.job_token[31] = 7;
  offpath_error_t error = {0};
  if (offpath_session_attach(&attach, &session, &error) != OFFPATH_OK) fprintf(stderr, "%s\n", error.text);
  REQUIRE(session != NULL);
  offpath_function_t* plain = function(argv[1], "plain");
  offpath_function_t* misbehave = function(argv[1], "misbehave");
  double values[1000], add = 0.5;
  for (int i = 0; i < 1000; ++i) values[i] = i;
  offpath_task_range_t all = {values, sizeof(values), OFFPATH_TASK_INOUT, 0};

  if (argc > 2) {  // too few threads: said, and no request is left
    offpath_op_t* op = submit(plain, &add, sizeof(add), &all);
    MPI_Request request;
    if (level < MPI_THREAD_MULTIPLE) {
      REQUIRE(offpath_mpi_request(op, &request) == OFFPATH_ERR_STATE && request == MPI_REQUEST_NULL);
    }
    REQUIRE(offpath_op_wait(op, UINT64_MAX) == OFFPATH_OK);
    offpath_op_free(op);
  } else {
    // One array with a message, again and again.
    for (int round = 0; round < 50; ++round) {
      MPI_Request requests[3];
      int sent = round, got = -1, flag = 0;
      MPI_Irecv(&got, 1, MPI_INT, rank, round, MPI_COMM_WORLD, &requests[0]);
      offpath_op_t* op = submit(plain, &add, sizeof(add), &all);
      REQUIRE(offpath_mpi_request(op, &requests[1]) == OFFPATH_OK && requests[1] != MPI_REQUEST_NULL);
      MPI_Isend(&sent, 1, MPI_INT, rank, round, MPI_COMM_WORLD, &requests[2]);
      MPI_Status statuses[3];
      if (round % 3 == 0) {
        REQUIRE(MPI_Waitall(3, requests, statuses) == MPI_SUCCESS);
      } else if (round % 3 == 1) {
        while (!flag) REQUIRE(MPI_Testall(3, requests, &flag, statuses) == MPI_SUCCESS);
      } else {
        int index = 0, seen = 0;
        for (int i = 0; i < 3; ++i) {
          REQUIRE(MPI_Waitany(3, requests, &index, &statuses[0]) == MPI_SUCCESS);
          seen |= 1 << index;
        }
        REQUIRE(seen == 7);
      }
      REQUIRE(got == round && requests[1] == MPI_REQUEST_NULL);
      REQUIRE(offpath_op_test(op) == OFFPATH_OK && values[7] == 7 + 0.5 * (round + 1));
      offpath_op_free(op);
    }
    // One that has ended long before; Fortran's handle.
    MPI_Request request;
    MPI_Fint handle;
    offpath_op_t* op = submit(plain, &add, sizeof(add), &all);
    REQUIRE(offpath_op_wait(op, UINT64_MAX) == OFFPATH_OK);
    REQUIRE(offpath_mpi_request_f(op, &handle) == OFFPATH_OK);
    request = MPI_Request_f2c(handle);
    REQUIRE(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    offpath_op_free(op);
    // One that fails.
    op = submit(misbehave, "s", 1, NULL);
    REQUIRE(offpath_mpi_request(op, &request) == OFFPATH_OK);
    MPI_Status status;
    REQUIRE(MPI_Wait(&request, &status) != MPI_SUCCESS);
    REQUIRE(offpath_op_wait(op, 0) == OFFPATH_ERR_TASK);
    offpath_op_free(op);
    // One that is cancelled while it runs: 'w' goes on for ever.
    op = submit(misbehave, "w", 1, NULL);
    REQUIRE(offpath_mpi_request(op, &request) == OFFPATH_OK);
    REQUIRE(MPI_Cancel(&request) == MPI_SUCCESS);
    REQUIRE(MPI_Wait(&request, &status) == MPI_SUCCESS);
    int cancelled = 0;
    MPI_Test_cancelled(&status, &cancelled);
    REQUIRE(cancelled && offpath_op_wait(op, 0) == OFFPATH_ERR_CANCELLED);
    offpath_op_free(op);
  }
  offpath_session_detach(session);
  if (rank == 0) printf("OK\n");
  MPI_Finalize();
  return 0;
}
