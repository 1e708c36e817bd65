// SPDX-License-Identifier: BSD-3-Clause
// Functions for the tests of tasks.
#include <offpath/task.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int nothing(const offpath_task_t* task) {
  (void)task;
  return 0;
}
OFFPATH_TASK_FUNCTION(nothing, "nothing 1");

// Every output byte is the sum of all input bytes, what was in it and the argument.
static int mix(const offpath_task_t* task) {
  unsigned sum = task->argument_bytes == 0 ? 0 : *(const unsigned char*)task->argument;
  for (uint32_t i = 0; i < task->ranges_count; ++i) {
    if ((task->ranges[i].access & OFFPATH_TASK_IN) == 0) continue;
    const unsigned char* bytes = task->ranges[i].address;
    for (uint64_t k = 0; k < task->ranges[i].bytes; ++k) sum = sum * 31 + bytes[k];
  }
  for (uint32_t i = 0; i < task->ranges_count; ++i) {
    if ((task->ranges[i].access & OFFPATH_TASK_OUT) == 0) continue;
    unsigned char* bytes = task->ranges[i].address;
    for (uint64_t k = 0; k < task->ranges[i].bytes; ++k) bytes[k] = (unsigned char)(sum + k);
  }
  return 0;
}
OFFPATH_TASK_FUNCTION(mix, "mix 1");

// Adds the double of the argument to each of a range.
__attribute__((visibility("default"))) int plain(const offpath_task_t* task) {
  double value;
  memcpy(&value, task->argument, sizeof(value));
  double* values = task->ranges[0].address;
  for (uint64_t i = 0; i < task->ranges[0].bytes / sizeof(double); ++i) values[i] += value;
  return 0;
}

static int process(const offpath_task_t* task) {
  const int32_t number = getpid();
  memcpy(task->ranges[0].address, &number, sizeof(number));
  return 0;
}
OFFPATH_TASK_FUNCTION(process, "process 1");

// Which processor it was built for, as `uname -m` says it.
static int processor(const offpath_task_t* task) {
#if defined(__aarch64__)
  const char name[] = "aarch64";
#else
  const char name[] = "x86_64";
#endif
  if (task->ranges[0].bytes < sizeof(name)) return 1;
  memcpy(task->ranges[0].address, name, sizeof(name));
  return 0;
}
OFFPATH_TASK_FUNCTION(processor, "processor 1");

// Takes 30 ms of processor time, and says how much its executor has taken.
static int burn(const offpath_task_t* task) {
  struct timespec begin, now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
  do {
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000LL + now.tv_nsec - begin.tv_nsec < 30000000);
  const uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  memcpy(task->ranges[0].address, &ns, sizeof(ns));
  return 0;
}
OFFPATH_TASK_FUNCTION(burn, "burn 1");

// Says by the file that the argument names that it runs, then does what the argument's letter says.
static int misbehave(const offpath_task_t* task) {
  const char how = *(const char*)task->argument;
  const int before = task->argument_bytes > 1 && access((const char*)task->argument + 1, F_OK) == 0;
  if (task->argument_bytes > 1) close(open((const char*)task->argument + 1, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  switch (how) {
    case 's':
      *(volatile int*)16 = 1;
      break;
    case 'a':
      abort();
    case 'e':
      exit(7);
    case '_':
      _exit(8);
    case 'k':
      raise(SIGKILL);
      break;
    case 'f':  // in the child first
      if (fork() == 0) return 9;
      wait(NULL);
      return 0;
    case 'x':  // the child alone
      if (fork() == 0) exit(7);
      wait(NULL);
      return 0;
    case 'r':
      snprintf(task->message, task->message_bytes, "nobody is at home");
      return 5;
    case 'w': {  // for ever
      const struct timespec pause = {0, 1000000};
      while (1) nanosleep(&pause, NULL);
    }
    case 'o': {  // for ever, but not if it is begun again
      const struct timespec pause = {0, 1000000};
      while (before == 0) nanosleep(&pause, NULL);
      return 0;
    }
    case 'c': {  // until it is told
      const struct timespec pause = {0, 1000000};
      while (*task->cancelled == 0) nanosleep(&pause, NULL);
      return 1;
    }
    case 'm': {  // as much memory as there is
      for (int i = 0; i < 1000; ++i) {
        char* more = malloc(64 << 20);
        if (more == NULL) return 12;
        memset(more, 1, 64 << 20);
      }
      return 0;
    }
    default:
      break;
  }
  return 0;
}
OFFPATH_TASK_FUNCTION(misbehave, "misbehave 1");

// Says that it runs, by the file that the argument names and ".begun"; then waits until that file is there, and returns the sum of what
// it reads.
static int await_file(const offpath_task_t* task) {
  char begun[512];
  const char* file = task->argument;
  snprintf(begun, sizeof(begun), "%s.begun", file);
  FILE* sign = fopen(begun, "a");
  if (sign != NULL) fclose(sign);
  const struct timespec pause = {0, 1000000};
  while (access(file, F_OK) != 0 && *task->cancelled == 0) nanosleep(&pause, NULL);
  const int32_t number = getpid();
  unsigned char* out = task->ranges[0].address;
  memcpy(out, &number, sizeof(number));
  for (uint64_t i = sizeof(number); i < task->ranges[0].bytes; ++i) out[i] = (unsigned char)(out[i] + 1);
  return 0;
}
OFFPATH_TASK_FUNCTION(await_file, "await_file 1");

static int sleep_ms(const offpath_task_t* task) {
  const struct timespec pause = {0, 1000000L * *(const unsigned char*)task->argument};
  nanosleep(&pause, NULL);
  const int32_t number = getpid();
  memcpy(task->ranges[0].address, &number, sizeof(number));
  return 0;
}
OFFPATH_TASK_FUNCTION(sleep_ms, "sleep_ms 1");
