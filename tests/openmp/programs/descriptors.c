// SPDX-License-Identifier: BSD-3-Clause
// Has as many descriptors left as its argument says when its first region begins.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char** argv) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 40;
  setrlimit(RLIMIT_NOFILE, &limit);
  int last = open("/dev/null", O_RDONLY), left = argc > 1 ? atoi(argv[1]) : 0;
  for (int next; (next = dup(last)) >= 0;) {
    last = next;
  }
  for (; left > 0; left--) {
    close(last--);
  }
#pragma omp target map(tofrom : last)
  last++;
  puts("went on");
  return 0;
}
