// SPDX-License-Identifier: BSD-3-Clause
// Tickets that are on their way: nobody waits for them, but their bytes stay until the library has sent them.
//
// Threads: any.
#pragma once

#include "mpi/messages/ticket.hpp"

#include <mpi.h>

#include <memory>
#include <mutex>
#include <vector>

namespace offpath::mpi {

class SentTickets {
 public:
  // Without memory for it the bytes are never freed.
  void add(MPI_Request request, std::unique_ptr<TicketBytes> ticket) noexcept;
  // Lets go of those that were sent.
  void tidy();
  // Leaves the rest to the library, and their memory.
  void abandon();

 private:
  struct Sent {
    MPI_Request request;
    std::unique_ptr<TicketBytes> ticket;
  };
  std::mutex mutex_;
  std::vector<Sent> sent_;
};

}  // namespace offpath::mpi
