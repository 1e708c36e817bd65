/* SPDX-License-Identifier: BSD-3-Clause
 * What the tests run in an executor. */
#include "device/upcall.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

int counter = 7;
const int constant = 5;

void add(uint64_t* to, uint64_t a, uint64_t b) { *to = a + b; }

void sum_of_many(uint64_t* to, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                 uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, uint64_t n, uint64_t o) {
  *to = a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j + 11 * k + 12 * l + 13 * m + 14 * n +
        15 * o;
}

void count(void) { ++counter; }

int omp_get_device_num(void);
void tell_number(int* to) { *to = omp_get_device_num(); }

void crash(void) { *(volatile int*)16 = 1; }

void leave(void) { exit(3); }

void leave_thread(void) { pthread_exit(0); }

void overflow_stack(uint64_t* to) {
  volatile char block[4096];
  block[0] = 1;
  overflow_stack(to);
  *to = (uint64_t)block[0];
}

/* Waits until the other of the two has come as well. */
void meet(int* arrived) {
  __atomic_add_fetch(arrived, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(arrived, __ATOMIC_SEQ_CST) < 2) {
  }
}

/* Sends `bytes` of a block in the heap and of one of its own; what comes back is twice as large in value. */
void ask(uint8_t* heap, uint64_t bytes, int64_t* result) {
  uint8_t* own = malloc(bytes + 1);
  memcpy(own, heap, bytes);
  const offpath_span_t inputs[2] = {{heap, bytes}, {own, bytes}};
  uint8_t* answer = calloc(bytes + 1, 1);
  const offpath_span_t outputs[2] = {{answer, bytes}, {heap, bytes}};
  const uint32_t args[2] = {17, 18};
  result[0] = offpath_upcall(42, args, sizeof(args), inputs, 2, outputs, 2);
  result[1] = memcmp(answer, heap, bytes) == 0 ? 1 : 0;
  free(own);
  free(answer);
}

/* Several at a time, answered in any order. */
void ask_many(int64_t* result, uint64_t count) {
  uint64_t ids[count];
  uint64_t values[count];
  for (uint64_t i = 0; i < count; ++i) {
    const offpath_span_t output = {&values[i], sizeof(values[i])};
    ids[i] = offpath_upcall_post(43, &i, sizeof(i), 0, 0, &output, 1);
  }
  *result = 0;
  for (uint64_t i = count; i-- > 0;) {
    if (ids[i] == 0 || offpath_upcall_wait(ids[i]) != 0 || values[i] != i * i) ++*result;
  }
}
