// SPDX-License-Identifier: BSD-3-Clause
// `nowait` and `depend`: order where it is asked for, several regions at once where it is not.
#include "check.h"

#include <unistd.h>

enum { COUNT = 64 };

#pragma omp declare target
static int arrived;
#pragma omp end declare target

static void chain(void) {
  int value = 1, steps[COUNT];
#pragma omp target enter data map(to : value)
  for (int i = 0; i < COUNT; i++) {
#pragma omp target nowait depend(inout : value) map(value) map(from : steps [i:1])
    {
      value = (value * 5 + 1) % 1009;
      steps[i] = value;
    }
  }
#pragma omp taskwait
#pragma omp target exit data map(from : value)
  for (int i = 0, expected = 1; i < COUNT; i++) {
    expected = (expected * 5 + 1) % 1009;
    CHECK(steps[i] == expected);
  }
  CHECK(value == steps[COUNT - 1]);
}

static void diamond(void) {
  int source = 0, left = 0, right = 0, sink = 0;
#pragma omp target nowait depend(out : source) map(tofrom : source)
  source = 10;
#pragma omp target nowait depend(in : source) depend(out : left) map(to : source) map(tofrom : left)
  left = source + 1;
#pragma omp target nowait depend(in : source) depend(out : right) map(to : source) map(tofrom : right)
  right = source * 2;
#pragma omp target nowait depend(in : left, right) map(to : left, right) map(tofrom : sink)
  sink = left + right;
#pragma omp taskwait
  CHECK(sink == 31);
}

// Each region waits until all of them have begun: they can only end if they run at the same time.
static void together(void) {
  int met[4] = {0};
#pragma omp target
  arrived = 0;
  for (int i = 0; i < 4; i++) {
#pragma omp target nowait map(from : met [i:1])
    {
      __atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
      for (int turn = 0; turn < 60000 && __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < 4; turn++) {
        usleep(1000);
      }
      met[i] = __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) == 4;
    }
  }
#pragma omp taskwait
  CHECK(met[0] && met[1] && met[2] && met[3]);
}

static void many(void) {
  static int results[200];
#pragma omp parallel for num_threads(4)
  for (int i = 0; i < 200; i++) {
    int square = 0;
#pragma omp target map(from : square)
    square = i * i;
    results[i] = square;
  }
  for (int i = 0; i < 200; i++) {
    CHECK(results[i] == i * i);
  }
}

int main(void) {
  check_place();
  chain();
  diamond();
  if (getenv("OFFPATH_TEST_HOST") == NULL) {
    together();
  }
  many();
  return check_status();
}
