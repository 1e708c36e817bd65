// SPDX-License-Identifier: BSD-3-Clause
// Ends in a region in the way that its argument names.
#include <omp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#pragma omp declare target
static void fall(int* address) { *address = 1; }
static int dive(volatile int* address) {
  volatile int here[1000];
  here[0] = *address + 1;
  return here[0] > 0 ? dive(here) + here[0] : 0;
}
#pragma omp end declare target

int main(int argc, char** argv) {
  const char way = argc > 1 ? argv[1][0] : '?';
  int done = 0;
#pragma omp target map(tofrom : done)
  done = getpid();
  printf("device process %d\n", done);
  fflush(stdout);
  if (way == 's') {
#pragma omp target map(tofrom : done)
    fall((int*)16);
  } else if (way == 'a') {
#pragma omp target map(tofrom : done)
    abort();
  } else if (way == 'e') {
#pragma omp target map(tofrom : done)
    exit(3);
  } else if (way == 't') {
#pragma omp target map(tofrom : done)
    pthread_exit(NULL);
  } else if (way == 'd') {  // in a thread of OpenMP's, which has no second stack
#pragma omp target map(tofrom : done)
#pragma omp parallel num_threads(2)
    if (omp_get_thread_num() == 1) {
      done = dive(&done);
    }
  } else if (way == 'f') {  // the last word is the process that stays
#pragma omp target map(tofrom : done)
    {
      done = fork();
      if (done == 0) {
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        pause();
      }
      printf("%d\n", done);
      fall((int*)16);
    }
  } else if (way == 'b') {  // the last word is the process that stays
#pragma omp target map(tofrom : done)
    {
      done = system("sleep 1000 >/dev/null 2>&1 & echo $!");
      fall((int*)16);
    }
  } else if (way == 'w') {  // for somebody who kills the device meanwhile
#pragma omp target map(tofrom : done)
    for (int i = 0; i < 100; i++) {
      sleep(1);
    }
  }
  puts("went on");
  return 0;
}
