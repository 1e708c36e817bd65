// SPDX-License-Identifier: BSD-3-Clause
// Tasks whose functions lie in the program's own code for devices.
#include "check.h"

#include <offpath/offpath.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VALUES 5000

#pragma omp declare target
static double helped(double value, double factor) { return value * factor; }

static int scale(const offpath_task_t* task) {
  const double factor = *(const double*)task->argument;
  double* values = (double*)task->ranges[0].address;
  const long count = (long)(task->ranges[0].bytes / sizeof(double));
#pragma omp parallel for num_threads(2)
  for (long i = 0; i < count; ++i) values[i] = helped(values[i], factor);
  return 0;
}
OFFPATH_TASK_FUNCTION(scale, "scale(double, inout double[]) 1");

// Which process runs it.
int whoami(const offpath_task_t* task) {
  *(long*)task->ranges[0].address = (long)getpid();
  return 0;
}

static int crash(const offpath_task_t* task) {
  (void)task;
  *(volatile int*)8 = 1;
  return 0;
}
OFFPATH_TASK_FUNCTION(crash, "crash 1");
#pragma omp end declare target

// Only the host has it.
int host_only(const offpath_task_t* task) {
  (void)task;
  return 0;
}

static offpath_session_t* session;

static offpath_session_t* attach(void) {
  offpath_error_t error = {0};
  offpath_attach_params_t params = {.struct_bytes = sizeof(params), .flags = OFFPATH_ATTACH_NODE_ONLY};
  FILE* random = fopen("/dev/urandom", "rb");
  CHECK(random != NULL && fread(params.job_token, sizeof(params.job_token), 1, random) == 1);
  fclose(random);
  offpath_session_t* made = NULL;
  if (offpath_session_attach(&params, &made, &error) != OFFPATH_OK) {
    fprintf(stderr, "%s\n", error.text);
    exit(1);
  }
  return made;
}

static offpath_status_t look_for(const char* library, const char* symbol, const char* signature,
                                 offpath_function_t** function, offpath_error_t* error) {
  const offpath_function_params_t params = {.struct_bytes = sizeof(params),
                                            .flags = OFFPATH_FUNCTION_TARGET,
                                            .library = library,
                                            .symbol = symbol,
                                            .signature = signature};
  memset(error, 0, sizeof(*error));
  return offpath_function_register(session, &params, function, error);
}

static offpath_function_t* find(const char* symbol, const char* signature) {
  offpath_error_t error;
  offpath_function_t* function = NULL;
  if (look_for(NULL, symbol, signature, &function, &error) != OFFPATH_OK) {
    fprintf(stderr, "%s\n", error.text);
    exit(1);
  }
  return function;
}

static int is_refused(const char* library, const char* symbol, const char* signature, const char* because) {
  offpath_error_t error;
  offpath_function_t* function = NULL;
  const offpath_status_t status = look_for(library, symbol, signature, &function, &error);
  if (status == OFFPATH_ERR_ARGUMENT && strstr(error.text, because) != NULL) return 1;
  fprintf(stderr, "%s: status %d, '%s'\n", symbol, status, error.text);
  return 0;
}

static offpath_op_t* submit(offpath_function_t* function, void* range, size_t bytes, const double* argument,
                            offpath_op_t* after) {
  const offpath_task_range_t all = {range, bytes, OFFPATH_TASK_INOUT, 0};
  const offpath_task_params_t task = {.struct_bytes = sizeof(task),
                                      .function = function,
                                      .argument = argument,
                                      .argument_bytes = argument == NULL ? 0 : sizeof(*argument),
                                      .ranges = &all,
                                      .ranges_count = 1,
                                      .after = &after,
                                      .after_count = after == NULL ? 0 : 1};
  offpath_op_t* op = NULL;
  CHECK(offpath_task_submit(session, &task, &op) == OFFPATH_OK);
  return op;
}

static void chain_of_tasks(double* values) {
  for (int i = 0; i < VALUES; ++i) values[i] = i;
  offpath_function_t* function = find("scale", "scale(double, inout double[]) 1");
  const double twice = 2, thrice = 3;
  offpath_op_t* first = submit(function, values, VALUES * sizeof(double), &twice, NULL);
  offpath_op_t* second = submit(function, values, VALUES * sizeof(double), &thrice, first);
  CHECK(offpath_op_wait(second, UINT64_MAX) == OFFPATH_OK);
  for (int i = 0; i < VALUES; ++i) CHECK(values[i] == 6.0 * i);
  offpath_op_free(first);
  offpath_op_free(second);
}

int main(void) {
  session = attach();
  double* shared = NULL;
  CHECK(offpath_memory_allocate(session, VALUES * sizeof(double), (void**)&shared) == OFFPATH_OK);
  chain_of_tasks(shared);
  double* own = malloc(VALUES * sizeof(double));
  chain_of_tasks(own);
  free(own);

  long process = 0;
  offpath_op_t* op = submit(find("whoami", NULL), &process, sizeof(process), NULL, NULL);
  CHECK(offpath_op_wait(op, UINT64_MAX) == OFFPATH_OK);
  CHECK(process > 0 && process != (long)getpid());
  offpath_op_free(op);

  op = submit(find("crash", "crash 1"), &process, sizeof(process), NULL, NULL);
  CHECK(offpath_op_wait(op, UINT64_MAX) == OFFPATH_ERR_TASK);
  char text[400];
  offpath_op_describe(op, text, sizeof(text));
  CHECK(strstr(text, "crashed") != NULL && strstr(text, "in code for devices of ") != NULL);
  offpath_op_free(op);
  chain_of_tasks(shared);

  CHECK(is_refused(NULL, "scale", "scale 2", "has the signature"));
  CHECK(is_refused(NULL, "whoami", "whoami 1", "no signature to compare"));
  CHECK(is_refused(NULL, "host_only", NULL, "exports no function 'host_only' for devices"));
  CHECK(is_refused(NULL, "nowhere", NULL, "exports no function 'nowhere' for devices"));
  CHECK(is_refused("/bin/true", "scale", NULL, "holds no code for devices"));
  CHECK(is_refused("/nowhere/at/all", "scale", NULL, "is not on the executor's machine"));
  CHECK(is_refused("a_name_alone", "scale", NULL, "no path"));
  CHECK(is_refused(NULL, "+10", NULL, "no name"));

  // The same functions are those of target regions.
  double value = 7;
#pragma omp target map(tofrom : value)
  value = helped(value, 6);
  CHECK(value == 42);
  offpath_session_detach(session);
  printf("all is right\n");
  return 0;
}
