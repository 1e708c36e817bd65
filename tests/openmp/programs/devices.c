// SPDX-License-Identifier: BSD-3-Clause
// Uses every device at once and prints, a line each, its number, its architecture and its process.
#include "check.h"

#include <unistd.h>

enum { MOST = 16, COUNT = 10000 };

int main(void) {
  const int devices = omp_get_num_devices() < MOST ? omp_get_num_devices() : MOST;
  int arm[MOST] = {0}, process[MOST] = {0}, number[MOST] = {0};
  static double values[MOST][COUNT];
  for (int device = 0; device < devices; device++) {
#pragma omp target nowait device(device) \
    map(from                             \
        : arm [device:1], process [device:1], number [device:1], values [device:1])
    {
#if defined(__aarch64__)
      arm[device] = 1;
#else
      arm[device] = 0;
#endif
      process[device] = getpid();
      number[device] = omp_get_device_num();
      for (int i = 0; i < COUNT; i++) {
        values[device][i] = device * COUNT + i;
      }
    }
  }
#pragma omp taskwait
  for (int device = 0; device < devices; device++) {
    printf("%d %s %d\n", device, arm[device] ? "aarch64" : "x86_64", process[device]);
    CHECK(number[device] == device);
    CHECK(values[device][COUNT - 1] == device * COUNT + COUNT - 1);
    for (int other = 0; other < device; other++) {
      CHECK(process[device] != process[other]);
    }
  }
  // From one device to the other, and a value of the host's that both see.
  if (devices >= 2) {
    int number = 41;
    int *first = omp_target_alloc(sizeof(int), 0), *second = omp_target_alloc(sizeof(int), 1);
#pragma omp target device(0) is_device_ptr(first) firstprivate(number)
    *first = number + 1;
    CHECK(omp_target_memcpy(second, first, sizeof(int), 0, 0, 1, 0) == 0);
    number = 0;
#pragma omp target device(1) is_device_ptr(second) map(from : number)
    number = *second;
    CHECK(number == 42);
    omp_target_free(first, 0);
    omp_target_free(second, 1);
  }
  return check_status();
}
