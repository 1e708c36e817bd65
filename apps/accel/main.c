// SPDX-License-Identifier: BSD-3-Clause
// accel: runs each kernel on the device and on the host, compares what they computed and prints both times.
#include "accel.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct accel_kernel kKernels[] = {
    {"stencil", "7-point Jacobi, N^3 points", 128, 16, 1e-12, accel_stencil},
    {"mriq", "MRI Q matrix, N voxels", 10000, 100, 1e-9, accel_mriq},
    {"lbm", "lattice Boltzmann D2Q9, N^2 cells", 256, 16, 1e-12, accel_lbm},
    {"cg", "conjugate gradients, N^2 unknowns", 300, 24, 1e-6, accel_cg},
    {"spmv", "sparse matrix times vector, N rows", 40000, 500, 1e-9, accel_spmv},
    {"ep", "Gaussian random pairs, 1000 N", 4000, 20, 1e-9, accel_ep},
};
enum { KERNELS = sizeof(kKernels) / sizeof(kKernels[0]) };

struct options {
  const char* kernel;  // null: all
  long size;           // 0: the kernel's
  bool small, json;
};

static int usage(FILE* to) {
  fputs("usage: accel [--kernel NAME] [--size N | --small] [--json] [--device N]\n", to);
  for (int i = 0; i < KERNELS; i++) {
    fprintf(to, "  %-8s %-36s N = %ld\n", kKernels[i].name, kKernels[i].what, kKernels[i].size);
  }
  return to == stdout ? 0 : 2;
}

static long number(const char* text) {
  char* end;
  const long value = text == NULL ? -1 : strtol(text, &end, 10);
  return text == NULL || *end != '\0' ? -1 : value;
}

// Largest difference relative to the largest value; infinite if anything is not a number.
static double difference(const struct accel_result* a, const struct accel_result* b) {
  double largest = 0, apart = 0;
  for (long i = 0; i < a->count; i++) {
    if (!isfinite(a->values[i]) || !isfinite(b->values[i])) {
      return INFINITY;
    }
    largest = fmax(largest, fabs(b->values[i]));
    apart = fmax(apart, fabs(a->values[i] - b->values[i]));
  }
  return largest > 0 ? apart / largest : INFINITY;
}

static bool run(const struct accel_kernel* kernel, const struct options* options) {
  const long size = options->size > 0 ? options->size : options->small ? kernel->small : kernel->size;
  free(kernel->run(kernel->small, true).values);  // loads the image, makes threads
  struct accel_result device = kernel->run(size, true), host = kernel->run(size, false);
  const double apart = difference(&device, &host);
  const bool same = apart <= kernel->tolerance;
  printf(options->json ? "{\"kernel\": \"%s\", \"size\": %ld, \"device_s\": %.6f, \"host_s\": %.6f, \"difference\": "
                         "%.3g, \"ok\": %s}\n"
                       : "%-8s N=%-7ld device %9.6f s   host %9.6f s   difference %.3g %s\n",
         kernel->name, size, device.seconds, host.seconds, isfinite(apart) ? apart : 1e300,
         options->json ? (same ? "true" : "false") : (same ? "ok" : "WRONG"));
  free(device.values);
  free(host.values);
  return same;
}

int main(int argc, char** argv) {
  struct options options = {NULL, 0, false, false};
  for (int i = 1; i < argc; i++) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--help") == 0) {
      return usage(stdout);
    } else if (strcmp(argv[i], "--small") == 0) {
      options.small = true;
    } else if (strcmp(argv[i], "--json") == 0) {
      options.json = true;
    } else if (strcmp(argv[i], "--kernel") == 0 && value != NULL) {
      options.kernel = value;
      i++;
    } else if (strcmp(argv[i], "--size") == 0 && (options.size = number(value)) >= 4) {
      i++;
    } else if (strcmp(argv[i], "--device") == 0 && number(value) >= 0) {
      omp_set_default_device((int)number(value));
      i++;
    } else {
      fprintf(stderr, "accel: '%s' is not understood or lacks a value. See: accel --help\n", argv[i]);
      return 2;
    }
  }
  int here = 1, ran = 0;
  bool all_same = true;
#pragma omp target map(from : here)
  here = omp_is_initial_device();
  if (here) {
    fputs("accel: no device runs target regions: both times are the host's\n", stderr);
  }
  for (int i = 0; i < KERNELS; i++) {
    if (options.kernel == NULL || strcmp(options.kernel, kKernels[i].name) == 0) {
      all_same = run(&kKernels[i], &options) && all_same;
      ran++;
    }
  }
  if (ran == 0) {
    fprintf(stderr, "accel: there is no kernel '%s'. See: accel --help\n", options.kernel);
    return 2;
  }
  return all_same ? 0 : 1;
}
