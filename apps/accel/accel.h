// SPDX-License-Identifier: BSD-3-Clause
// Kernels of the kinds that SPEC ACCEL measures, as target regions: each makes its input from its size alone, computes
// on the device or, with the same text, on the host, and returns what it computed.
#pragma once

#include <stdbool.h>

struct accel_result {
  double* values;  // the caller frees them
  long count;
  double seconds;  // of the regions and what they map
};

struct accel_kernel {
  const char* name;
  const char* what;
  long size;         // by default: about a tenth of a second on one core
  long small;        // for an emulated processor
  double tolerance;  // between host and device, relative to the largest value: sums may be in another order
  struct accel_result (*run)(long size, bool on_device);
};

struct accel_result accel_cg(long size, bool on_device);
struct accel_result accel_ep(long size, bool on_device);
struct accel_result accel_lbm(long size, bool on_device);
struct accel_result accel_mriq(long size, bool on_device);
struct accel_result accel_spmv(long size, bool on_device);
struct accel_result accel_stencil(long size, bool on_device);

// Ends the program where there is no memory.
double* accel_doubles(long count);
// A number in [0, 1) that depends on `index` only.
double accel_random(long index);
