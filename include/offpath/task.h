/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Offpath tasks, for those who write the functions. A function lives in a shared object, which an executor loads: a process
 * next to the program, or on another node. So it sees nothing of the program but what it is given:
 *
 *   static int axpy(const offpath_task_t* task) {
 *     const double a = *(const double*)task->argument;
 *     const double* x = task->ranges[0].address;
 *     double* y = task->ranges[1].address;
 *     for (uint64_t i = 0; i < task->ranges[1].bytes / sizeof(double); ++i) y[i] += a * x[i];
 *     return 0;
 *   }
 *   OFFPATH_TASK_FUNCTION(axpy, "axpy(double, in double[], inout double[]) 1");
 *
 * A task is a pure function of its argument and of what its ranges hold when it begins. It may be run again, so it
 * writes nothing but its "out" and "inout" ranges, and does not read what only earlier tasks left in the executor. Pointers of
 * the program mean nothing there. One that crashes, exits or throws fails its own operation and nothing else.
 */
#ifndef OFFPATH_TASK_H
#define OFFPATH_TASK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum offpath_task_access {
#define OFFPATH_TASK_ACCESS(NAME, number, about) OFFPATH_TASK_##NAME = number,
#include <offpath/words/task_accesses.def>
} offpath_task_access_t;

/* A range of the program's memory. `address`: in the program where a task is submitted, in the executor where it runs. */
typedef struct offpath_task_range {
  void* address;
  uint64_t bytes;
  uint32_t access; /* offpath_task_access_t */
  uint32_t
      version; /* of an "in" range; 0: it is copied for each task. Else it holds the same bytes whenever it is named with this
                       number, so one copy may serve many tasks (where there are copies). Other bytes: another number */
} offpath_task_range_t;

/* What a function gets. Fields are only ever added at the end. */
typedef struct offpath_task {
  uint32_t struct_bytes;
  uint32_t ranges_count;
  const void* argument; /* aligned to 64 bytes */
  uint64_t argument_bytes;
  const offpath_task_range_t* ranges; /* as submitted, in that order; aligned as the program's are, up to 64 bytes */
  const volatile uint32_t* cancelled; /* not 0: nobody wants the result any more. Looking is optional */
  char* message; /* for a person, when the function does not return 0; text of message_bytes at most, ended by '\0' */
  uint64_t message_bytes;
} offpath_task_t;

/* Returns 0, or else the operation fails with OFFPATH_ERR_TASK and this code (offpath_task_result). */
typedef int (*offpath_task_function_t)(const offpath_task_t* task);

/* How a function says what it is. Without this a function is any exported symbol, and its signature is not checked. */
typedef struct offpath_task_declaration {
  uint32_t struct_bytes;
  uint32_t api; /* OFFPATH_TASK_API */
  const char* signature;
  offpath_task_function_t function;
} offpath_task_declaration_t;

#define OFFPATH_TASK_API 1

/* `text` says what the function takes and which version it is: callers name the same (offpath_function_params_t). */
#ifdef __cplusplus
#define OFFPATH_TASK_FUNCTION(name, text)                                                                              \
  extern "C" __attribute__((visibility("default"))) const offpath_task_declaration_t offpath_task_of_##name;           \
  __attribute__((used)) const offpath_task_declaration_t offpath_task_of_##name = {sizeof(offpath_task_declaration_t), \
                                                                                   OFFPATH_TASK_API, text, name}
#else
#define OFFPATH_TASK_FUNCTION(name, text)                                                                  \
  __attribute__((visibility("default"), used)) const offpath_task_declaration_t offpath_task_of_##name = { \
      sizeof(offpath_task_declaration_t), OFFPATH_TASK_API, text, name}
#endif

#ifdef __cplusplus
}
#endif

#endif
