// SPDX-License-Identifier: BSD-3-Clause
// The elements of a receive, from its post to its end: what their first bytes are, and how a payload gets there.
//
// Threads: one at a time.
#pragma once

#include "mpi/messages/ticket.hpp"
#include "mpi/types/datatype.hpp"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::mpi {

class ReceivedElements {
 public:
  ReceivedElements(void* buffer, int64_t count, MPI_Datatype type)
      : address_(reinterpret_cast<uintptr_t>(buffer)), count_(count), handle_(type) {}

  // Whether they have room for a ticket. Cheap, and wrong about nothing: a message that fits in less is none.
  static bool hold_a_ticket(int64_t count, MPI_Datatype type);

  // The application may free its datatype from here on. MPI error code. Inside. May throw bad_alloc.
  int keep();
  // The same for one that is received again and again.
  int keep_handle();
  int receive(MPI_Message* message, MPI_Request* request) const;
  int receive(int from, int tag, MPI_Comm comm, MPI_Request* request) const;
  bool hold_a_ticket() const { return hold_a_ticket(count_, handle_); }
  // The ticket that lies there. Inside. May throw bad_alloc.
  std::optional<Ticket> ticket(const Mark& mark);
  // What lies there now. MPI error code. Inside. May throw bad_alloc.
  int copy(std::vector<std::byte>* copy);
  // Copies a payload of `bytes`, or as much of it as fits: MPI_ERR_TRUNCATE then. Inside. May throw bad_alloc.
  int put(const std::byte* payload, uint64_t bytes);

 private:
  bool describe();
  int put_part(const std::byte* bytes, uint64_t count, uintptr_t address);

  uintptr_t address_;
  int64_t count_;
  MPI_Datatype handle_;
  std::optional<HeldType> type_;
};

}  // namespace offpath::mpi
