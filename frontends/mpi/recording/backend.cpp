// SPDX-License-Identifier: BSD-3-Clause
// The back end that the doorway opens instead of the offloading one when a profile is asked for: the recorder over the
// native functions.
#include "mpi/functions/backend.h"

#include "mpi/native/stand_ins.hpp"
#include "mpi/native/waits.hpp"
#include "mpi/recording/layer.hpp"

extern "C" __attribute__((visibility("default"))) int offpath_mpi_backend_open(offpath_backend_t* backend) {
  using namespace offpath::mpi;
  if (backend->struct_bytes != sizeof(*backend) || backend->function_count != OFFPATH_FUNCTION_COUNT) return -1;
  if (!native.load(backend->mpi)) return -1;
  set_missing(backend);
  if (backend->only_missing != 0) return 0;
  waits::install(backend, waits::Timed::always);
  recording::install(backend->handlers, recording::kProfile);
  backend->mark_region = &recording::mark_region;
  return 0;
}
