// SPDX-License-Identifier: BSD-3-Clause
// Ticket: what is sent natively in place of a long message, whose payload goes through the services. Its length and all
// its bytes follow from what it says and from the job's random mark, so that nothing else is ever taken for one. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace offpath::mpi {

inline constexpr size_t kTicketBytes = 1024;
using Mark = std::array<uint64_t, 4>;
using TicketBytes = std::array<std::byte, kTicketBytes>;

struct Ticket {
  uint64_t sender = 0;  // rank in MPI_COMM_WORLD
  uint64_t bytes = 0;   // of the payload
  uint64_t region = 0;  // that the receiver has granted: its number, and the stretch of the ring that is used
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;  // of the payload in the region; the signal lies behind it
  uint64_t signal = 0;  // what is there when the payload is
  bool operator==(const Ticket&) const = default;
};

TicketBytes write_ticket(const Mark& mark, const Ticket& ticket);
// Nothing: these are other bytes. `bytes`: kTicketBytes of them.
std::optional<Ticket> read_ticket(const Mark& mark, const std::byte* bytes);

// A word for the signal of a message that no other one of the job has, and payloads have by chance only.
uint64_t signal_of(const Mark& mark, uint64_t sender, uint64_t receiver, uint64_t number);

}  // namespace offpath::mpi
