// SPDX-License-Identifier: BSD-3-Clause
// What every recording handler does around the call below it, and who sets the handlers.
#pragma once

#include "mpi/functions/backend.h"
#include "mpi/recording/decision.hpp"
#include "mpi/recording/log.hpp"

#include <exception>

namespace offpath::mpi::recording {

// What lies below: the back end's handlers, or native functions.
extern Native next;

// A guest never throws: out of memory ends the recording only.
void guarded(auto&& record) {
  const Inside inside;
  try {
    record();
  } catch (const std::exception&) {
    log.stop();
  }
}

inline bool passes() { return Inside::here() || !log.on(); }

// The name of an MPI function without MPI_.
template <auto function>
inline constexpr const char* called = name_of(function) + sizeof("MPI_") - 1;

#define OFFPATH_CALL(name)                                              \
  const void* const site = log.callers.of(__builtin_return_address(0)); \
  const Call call { name, log.since_start_ns(), site }
// Handlers are many: what is the same in them is compiled once, out of line.
template <auto choose>
[[gnu::noinline]] Ticket chosen(auto on, const void* site) {
  Ticket ticket;
  guarded([&] { ticket = (log.*choose)(on, site); });
  return ticket;
}

// A call that posts an operation; `choose`: how the log chooses it, on what, by its call site. One that is not recorded
// needs no times.
#define OFFPATH_POSTING(name, choose, on)                               \
  const void* const site = log.callers.of(__builtin_return_address(0)); \
  const Ticket ticket = chosen<&Log::choose>(on, site);                 \
  const Posting posting(ticket.operation);                              \
  const Call call { name, ticket.recorded() ? log.since_start_ns() : 0, site }

// Each puts its own into the table, by OFFPATH_FUNCTION_*.
void set_collectives(void** handlers);
void set_waiting(void** handlers);
void set_remote(void** handlers);
void set_messages(void** handlers);

}  // namespace offpath::mpi::recording
