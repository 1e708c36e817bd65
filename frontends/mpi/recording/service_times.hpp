// SPDX-License-Identifier: BSD-3-Clause
// What only the handlers below the recorder know of an operation that is recorded: its times at the service.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>
#include <span>

namespace offpath::mpi::recording {

// What is recorded under that number has ended at the service as these operations, at least one, with that MPI error
// code; before they are freed.
void record_service(uint64_t recorded, std::span<offpath_op_t* const> ops, int error);

}  // namespace offpath::mpi::recording
