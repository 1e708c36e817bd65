// SPDX-License-Identifier: BSD-3-Clause
// What the benchmark of balancing runs: it waits, or it computes, and its result depends on what it was given.
#include "piece.hpp"

#include <offpath/task.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <unistd.h>

namespace {

// How many times slower this executor is; read each time, as it changes.
unsigned slowness(const char* folder) {
  char path[300];
  snprintf(path, sizeof(path), "%s/%d", folder, getpid());
  FILE* file = fopen(path, "r");
  unsigned times = 1;
  if (file != nullptr) {
    if (fscanf(file, "%u", &times) != 1) times = 1;
    fclose(file);
  }
  return times;
}

int piece(const offpath_task_t* task) {
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto& what = *static_cast<const Piece*>(task->argument);
  const unsigned times = slowness(what.speeds);
  const auto* in = static_cast<const double*>(task->ranges[0].address);
  auto* out = static_cast<double*>(task->ranges[1].address);
  const uint64_t count = task->ranges[1].bytes / sizeof(double);
  // A slow one computes the same several times.
  for (unsigned turn = 0; turn < times; ++turn) relax(in, out, count, what.rounds);
  const uint64_t end_ns = static_cast<uint64_t>(until.tv_nsec) + what.run_ns * times;
  until.tv_sec += static_cast<time_t>(end_ns / 1000000000);
  until.tv_nsec = static_cast<long>(end_ns % 1000000000);
  if (what.run_ns > 0) {
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
  }
  return 0;
}
OFFPATH_TASK_FUNCTION(piece, "piece(Piece, in double[], out double[]) 1");

}  // namespace
