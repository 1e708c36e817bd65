// SPDX-License-Identifier: BSD-3-Clause
// A task's function, in a shared object, that has a target region in itself.
#include <offpath/task.h>

#include <unistd.h>

static int scale(const offpath_task_t* task) {
  const double factor = *(const double*)task->argument;
  double* values = (double*)task->ranges[0].address;
  long* processes = (long*)task->ranges[1].address;
  const long count = (long)(task->ranges[0].bytes / sizeof(double));
  long process = 0;
#pragma omp target map(tofrom : values [0:count]) map(from : process)
  {
    for (long i = 0; i < count; ++i) values[i] *= factor;
    process = (long)getpid();
  }
  processes[0] = (long)getpid();
  processes[1] = process;
  return 0;
}
OFFPATH_TASK_FUNCTION(scale, "scale(double, inout double[], out long[2]) 1");
