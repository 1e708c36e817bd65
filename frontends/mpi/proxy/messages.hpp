// SPDX-License-Identifier: BSD-3-Clause
// Messages and collectives of regions as nonblocking native calls.
#pragma once

#include "mpi/proxy/contexts.hpp"
#include "mpi/proxy/progress.hpp"
#include "mpi/proxy/upcall.hpp"

#include <memory>

namespace offpath::mpi::regions {

// Starts the native call. Nothing: it is answered already. Never blocks. May throw bad_alloc.
std::unique_ptr<Task> start_message(Upcall upcall, const std::shared_ptr<Contexts>& contexts);
std::unique_ptr<Task> start_collective(Upcall upcall, const std::shared_ptr<Contexts>& contexts);

}  // namespace offpath::mpi::regions
