// SPDX-License-Identifier: BSD-3-Clause
// A ticket that was received, until its payload has taken its place.
//
// Threads: one at a time.
#pragma once

#include "mpi/messages/elements.hpp"
#include "mpi/messages/ticket.hpp"

#include <mpi.h>

#include <chrono>
#include <cstddef>
#include <optional>

namespace offpath::mpi {

class Claim {
 public:
  // Inside.
  explicit Claim(const Ticket& ticket);

  uint64_t bytes() const { return ticket_.bytes; }
  // Nothing is left to wait for: it is there, or will never be. Never waits.
  bool settled();
  // Until then; moves on what else is under way.
  void await();
  // Precondition: settled. Copies the payload, and lets the sender know, the first time. MPI error code, the same each time.
  // Inside. May throw bad_alloc.
  int deliver(ReceivedElements& elements);
  // What a status says of it.
  void fill(MPI_Status* status) const;

 private:
  using Clock = std::chrono::steady_clock;

  Ticket ticket_;
  const std::byte* payload_;  // nullptr: none is there, or no more
  int code_ = MPI_SUCCESS;
  Clock::time_point next_look_{};
};

// What a receive that `status` is of has brought, if it is a ticket. Inside. May throw bad_alloc.
std::optional<Ticket> ticket_of(const MPI_Status& status, ReceivedElements& elements);

}  // namespace offpath::mpi
