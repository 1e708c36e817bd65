// SPDX-License-Identifier: BSD-3-Clause
// regions: what target regions cost on the default device, one JSON object a line: {"name", "unit", "value"}, medians.
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_REPEATS = 100000, MAPPED_BYTES = 128, WARMUP = 20, PAGE_BYTES = 4096 };
static double times[MOST_REPEATS];

static int ascending(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

// Finer than omp_get_wtime, which counts microseconds in LLVM's.
static double now_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double median(int count) {
  qsort(times, (size_t)count, sizeof(double), ascending);
  return times[count / 2];
}

static void row(const char* name, const char* unit, double value) {
  printf("{\"name\": \"%s\", \"unit\": \"%s\", \"value\": %.6g}\n", name, unit, value);
}

static void wrong(const char* what) {
  fprintf(stderr, "regions: %s came out wrong (times mean nothing then). Report this\n", what);
  exit(1);
}

// A byte of each page that no other repeat has: what an earlier one has left is wrong.
#pragma omp declare target
static void stamp(char* data, size_t bytes, char value) {
  for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
    data[at] = value;
  }
}
static int has_stamps(const char* data, size_t bytes, char value) {
  int right = 1;
  for (size_t at = 0; at < bytes; at += PAGE_BYTES) {
    right &= data[at] == value;
  }
  return right;
}
#pragma omp end declare target

static void short_regions(int repeats) {
  char small[MAPPED_BYTES] = "";
  for (int i = -WARMUP; i < repeats; i++) {
    const double start = now_s();
#pragma omp target
    {}
    times[i < 0 ? 0 : i] = now_s() - start;
  }
  row("empty region", "us", 1e6 * median(repeats));
  for (int i = -WARMUP; i < repeats; i++) {
    const double start = now_s();
#pragma omp target map(tofrom : small)
    small[0]++;
    times[i < 0 ? 0 : i] = now_s() - start;
    if (small[0] != (char)(i + WARMUP + 1)) {
      wrong("a map of 128 B");
    }
  }
  row("map(tofrom) of 128 B", "us", 1e6 * median(repeats));
}

// One memcpy into memory that another process has mapped, written and reads: what a map can move at best.
static double between_processes(const char* data, size_t bytes, int repeats) {
  char* shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    return 0;
  }
  const pid_t other = fork();
  if (other == 0) {
    memset(shared, 1, bytes);
    _exit(0);
  }
  waitpid(other, NULL, 0);
  for (int i = -1; i < repeats; i++) {
    const double start = now_s();
    memcpy(shared, data, bytes);
    times[i < 0 ? 0 : i] = now_s() - start;
  }
  munmap(shared, bytes);
  return (double)bytes / 1e9 / median(repeats);
}

// Each repeat maps memory, as a region of its own would.
static void long_maps(size_t bytes, int repeats) {
  char* data = malloc(bytes);
  if (data == NULL) {
    fprintf(stderr, "regions: %zu bytes do not fit into memory. Give a smaller --bytes\n", bytes);
    exit(1);
  }
  memset(data, 7, bytes);
  const double best = between_processes(data, bytes, repeats);
  row("memcpy between processes", "GB/s", best);
  for (int i = -1; i < repeats; i++) {
    const char value = (char)(i + 2);
    int right = 0;
    stamp(data, bytes, value);
    const double start = now_s();
#pragma omp target enter data map(to : data [0:bytes])
    times[i < 0 ? 0 : i] = now_s() - start;
#pragma omp target map(from : right) firstprivate(value, bytes)
    right = has_stamps(data, bytes, value);
#pragma omp target exit data map(delete : data [0:bytes])
    if (!right) {
      wrong("a map of many bytes to the device");
    }
  }
  const double to = (double)bytes / 1e9 / median(repeats);
  for (int i = -1; i < repeats; i++) {
    const char value = (char)(i + 101);
    stamp(data, bytes, 0);
#pragma omp target enter data map(alloc : data [0:bytes])
#pragma omp target firstprivate(value, bytes)
    stamp(data, bytes, value);
    const double start = now_s();
#pragma omp target exit data map(from : data [0:bytes])
    times[i < 0 ? 0 : i] = now_s() - start;
    if (!has_stamps(data, bytes, value)) {
      wrong("a map of many bytes from the device");
    }
  }
  const double from = (double)bytes / 1e9 / median(repeats);
  row("bulk map(to)", "GB/s", to);
  row("bulk map(from)", "GB/s", from);
  row("bulk map(to) / memcpy", "1", best > 0 ? to / best : 0);
  row("bulk map(from) / memcpy", "1", best > 0 ? from / best : 0);
  free(data);
}

#pragma omp declare target
static double work(long turns) {
  volatile double x = 1;
  for (long i = 0; i < turns; i++) {
    x = x * 0.999999 + 1e-6;
  }
  return x;
}
#pragma omp end declare target

static double region_s(long turns) {
  double result = 0;
  const double start = now_s();
#pragma omp target map(from : result)
  result = work(turns);
  return now_s() - start + 0 * result;
}

static double host_s(long turns) {
  const double start = now_s();
  const double result = work(turns);
  return now_s() - start + 0 * result;
}

// A nowait region and the host compute for `aim_s` each: 1 is perfect, one half is one after the other.
static void overlap(double aim_s, int repeats) {
  const long probe = 1000000;
  long turns_host = (long)(aim_s / host_s(probe) * probe), turns_region = (long)(aim_s / region_s(probe) * probe);
  for (int i = 0; i < repeats; i++) {
    const double host_alone = host_s(turns_host), region_alone = region_s(turns_region);
    double result = 0;
    const double start = now_s();
#pragma omp target nowait map(from : result) firstprivate(turns_region)
    result = work(turns_region);
    host_s(turns_host);
#pragma omp taskwait
    const double together = now_s() - start;
    times[i] = (host_alone > region_alone ? host_alone : region_alone) / together;
  }
  row("overlap of nowait and host", "1", median(repeats));
}

int main(int argc, char** argv) {
  long repeats = 2000, bytes = 64 << 20;
  for (int i = 1; i + 1 < argc; i += 2) {
    long* option = strcmp(argv[i], "--repeats") == 0 ? &repeats : strcmp(argv[i], "--bytes") == 0 ? &bytes : NULL;
    if (option == NULL || (*option = atol(argv[i + 1])) < 1) {
      fputs("usage: regions [--repeats N] [--bytes BYTES]\n", stderr);
      return 2;
    }
  }
  repeats = repeats < MOST_REPEATS ? repeats : MOST_REPEATS;
  const int fewer = repeats < 21 ? (int)repeats : 21;
  int here = 1;
#pragma omp target map(from : here)
  here = omp_is_initial_device();
  if (here) {
    fputs("regions: no device runs target regions (nothing to measure). See: offpath devices\n", stderr);
    return 1;
  }
  short_regions((int)repeats);
  long_maps((size_t)bytes, fewer);
  overlap(0.02, fewer);
  return 0;
}
