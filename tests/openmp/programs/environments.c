// SPDX-License-Identifier: BSD-3-Clause
// Data environments: what is mapped, when it moves, and what lives on the device.
#include "check.h"

#include <string.h>

#pragma omp declare target
int global = 5;
double table[100];
static long counter = 100;
static void count_up(void) { counter++; }
#pragma omp end declare target

struct particle {
  double position[3];
  char kind;
  float mass;
};

struct holder {
  int count;
  double* values;
};

static void globals(void) {
  int seen = 0;
#pragma omp target map(from : seen)
  {
    seen = global;
    global = 6;
    table[99] = 1.5;
  }
  CHECK(seen == 5 && global == 5);
#pragma omp target update from(global, table)
  CHECK(global == 6 && table[99] == 1.5);
  global = 7;
  table[0] = 2.5;
#pragma omp target update to(global, table)
  double sum = 0;
  long counted = 0;
#pragma omp target map(from : sum, counted)
  {
    count_up();
    count_up();
    counted = counter;
    sum = global + table[0];
  }
  CHECK(sum == 9.5 && counted == 102 && counter == 100);
}

static void scalars(void) {
  int i = -3;
  char c = 'x';
  float f = 0.25f;
  double d = 1e300;
  long long big = 1LL << 40;
  unsigned char flags = 200;
  int same = 0;
#pragma omp target map(from : same) firstprivate(i, c, f, d, big, flags)
  {
    same = i == -3 && c == 'x' && f == 0.25f && d == 1e300 && big == 1LL << 40 && flags == 200;
    i = 0;
    d = 0;
  }
  CHECK(same && i == -3 && d == 1e300);
}

static void structures(void) {
  struct particle particles[50];
  memset(particles, 0, sizeof particles);
  for (int i = 0; i < 50; i++) {
    particles[i] = (struct particle){{i, 2 * i, 3 * i}, (char)('a' + i % 26), 0.5f * (float)i};
  }
#pragma omp target parallel for map(tofrom : particles)
  for (int i = 0; i < 50; i++) {
    particles[i].position[2] += particles[i].mass;
    particles[i].kind = 'z';
  }
  CHECK(particles[49].position[2] == 147 + 24.5 && particles[49].kind == 'z' && particles[49].position[1] == 98);

  struct holder holder = {64, malloc(64 * sizeof(double))};
  for (int i = 0; i < 64; i++) {
    holder.values[i] = i;
  }
#pragma omp target map(to : holder.count) map(tofrom : holder.values [0:64])
  for (int i = 0; i < holder.count; i++) {
    holder.values[i] += 1;
  }
  CHECK(holder.values[63] == 64);
  free(holder.values);
}

static void regions_of_data(void) {
  int a[1000], b[1000];
  for (int i = 0; i < 1000; i++) {
    a[i] = i;
    b[i] = 0;
  }
#pragma omp target data map(to : a) map(from : b)
  {
#pragma omp target
    for (int i = 0; i < 1000; i++) {
      b[i] = a[i];
    }
    a[500] = -1;
#pragma omp target update to(a [500:1])
#pragma omp target
    b[500] = a[500] + a[499];
#pragma omp target update from(b [500:1])
    CHECK(b[500] == 498);
    CHECK(b[501] == 0 || getenv("OFFPATH_TEST_HOST"));
  }
  CHECK(b[999] == 999);

#pragma omp target enter data map(to : a [100:50])
  CHECK(omp_target_is_present(&a[100], omp_get_default_device()) || getenv("OFFPATH_TEST_HOST"));
#pragma omp target map(a [100:50])
  a[149] = 7;
#pragma omp target exit data map(from : a [100:50])
  CHECK(a[149] == 7);

  // A section that does not begin at the array's start, and one of no bytes.
  int part = 0;
#pragma omp target map(to : a [900:100], b [0:0]) map(from : part)
  part = a[999];
  CHECK(part == 999);
}

static void device_memory(void) {
  const int device = omp_get_default_device(), host = omp_get_initial_device();
  const size_t bytes = 3 << 20;
  char *here = malloc(bytes), *back = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) {
    here[i] = (char)(i * 7);
  }
  char* there = omp_target_alloc(bytes, device);
  CHECK(there != NULL);
  CHECK(omp_target_memcpy(there, here, bytes, 0, 0, device, host) == 0);
#pragma omp target is_device_ptr(there)
  there[1] = 'q';
  CHECK(omp_target_memcpy(back, there, bytes - 1, 0, 1, host, device) == 0);
  CHECK(back[0] == 'q' && memcmp(back + 1, here + 2, bytes - 2) == 0);
  char* second = omp_target_alloc(bytes, device);
  CHECK(omp_target_memcpy(second, there, bytes, 0, 0, device, device) == 0);
  CHECK(omp_target_memcpy(back, second, bytes, 0, 0, host, device) == 0);
  CHECK(back[1] == 'q' && back[bytes - 1] == here[bytes - 1]);
  omp_target_free(second, device);
  omp_target_free(there, device);

  // Memory that the region itself allocates lives until the region frees it.
  long kept = 0;
#pragma omp target map(from : kept)
  {
    int* own = malloc(4000);
    own[999] = 77;
    kept = (long)own;
  }
  int value = 0;
#pragma omp target map(from : value)
  {
    value = ((int*)kept)[999];
    free((void*)kept);
  }
  CHECK(value == 77);
  free(here);
  free(back);
}

int main(void) {
  check_place();
  if (getenv("OFFPATH_TEST_HOST") == NULL) {
    globals();
  }
  scalars();
  structures();
  regions_of_data();
  device_memory();
  return check_status();
}
