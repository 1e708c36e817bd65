// SPDX-License-Identifier: BSD-3-Clause
// The functions that complete requests, as they are for messages: laid over the library's, below everything else that
// waits (mpi/requests/completion.cpp), where they cost a comparison while no message is ours.
#pragma once

#include "mpi/native/native.hpp"

namespace offpath::mpi {

// The library's functions without these.
extern Native beneath;

// Lays them over the library's. Before any handler can run.
void watch_completions();

// Requests that the application has freed while they were under way: moves them on. True: none is left that will
// end by itself, as a receive need not.
bool finish_freed();

}  // namespace offpath::mpi
