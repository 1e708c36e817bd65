// SPDX-License-Identifier: BSD-3-Clause
// What the regions' process may do: umask and soft limit of the stack, as the last device has them. It has used a stack of
// 5 MB where there is no limit, and waits for its input to end.
#include "check.h"

#include <sys/resource.h>
#include <sys/stat.h>

int main(void) {
  int mask = 0;
  long stack = 0;
  for (int device = 0; device < omp_get_num_devices(); device++) {
#pragma omp target device(device) map(from : mask, stack)
    {
      struct rlimit limit;
      mask = (int)umask(0);
      umask((mode_t)mask);
      getrlimit(RLIMIT_STACK, &limit);
      stack = limit.rlim_cur == RLIM_INFINITY ? -1 : (long)limit.rlim_cur;
      const int bytes = stack < 0 ? 5 << 20 : 1;
      volatile char block[bytes];
      for (int i = 0; i < bytes; i += 4096) {
        block[i] = 1;
      }
    }
  }
  printf("%o %ld\n", (unsigned)mask, stack);
  fflush(stdout);
  while (getchar() != EOF) {
  }
  return 0;
}
