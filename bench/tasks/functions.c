// SPDX-License-Identifier: BSD-3-Clause
// What the benchmark of tasks runs.
#include <offpath/task.h>

static int nothing(const offpath_task_t* task) {
  (void)task;
  return 0;
}
OFFPATH_TASK_FUNCTION(nothing, "nothing 1");
