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
// Its length is so many whole elements of any type of MPI: a receive may take them apart, and MPICH knows no part of one.
inline constexpr size_t kTicketUnit = 32;
// Synchronous sends of one process to another that may be under way at a time, numbered from 1. The number is in the
// ticket's length, which a probe sees before it takes the ticket out; odd units, as few messages of programs are so long.
inline constexpr uint64_t kSynchronous = 16;
constexpr size_t ticket_length(uint64_t synchronous) {
  return synchronous == 0 ? kTicketBytes : kTicketBytes + (2 * static_cast<size_t>(synchronous) - 1) * kTicketUnit;
}
// The number of a ticket of that length, 0 of a send that is not synchronous. Nothing: no ticket is so long.
constexpr std::optional<uint64_t> synchronous_of(int64_t length) {
  if (length == static_cast<int64_t>(kTicketBytes)) return 0;
  constexpr int64_t kStep = 2 * kTicketUnit;
  const int64_t more = length - static_cast<int64_t>(kTicketBytes) + static_cast<int64_t>(kTicketUnit);
  if (more < kStep || more % kStep != 0 || more > static_cast<int64_t>(kSynchronous) * kStep) return std::nullopt;
  return static_cast<uint64_t>(more / kStep);
}
using Mark = std::array<uint64_t, 4>;
using TicketBytes = std::array<std::byte, ticket_length(kSynchronous)>;  // room for the longest

struct Ticket {
  uint64_t sender = 0;  // rank in MPI_COMM_WORLD
  uint64_t bytes = 0;   // of the payload
  uint64_t region = 0;  // that the receiver has granted: its number, and the stretch of the ring that is used
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t offset = 0;       // of the payload in the region; the signal lies behind it
  uint64_t signal = 0;       // what is there when the payload is
  uint64_t synchronous = 0;  // number of the send
  bool operator==(const Ticket&) const = default;
};

// ticket_length(ticket.synchronous) of them are sent.
TicketBytes write_ticket(const Mark& mark, const Ticket& ticket);
// Nothing: these are other bytes. `bytes`: the first kTicketBytes of them.
std::optional<Ticket> read_ticket(const Mark& mark, const std::byte* bytes);

// A word for the signal of a message that no other one of the job has, and payloads have by chance only.
uint64_t signal_of(const Mark& mark, uint64_t sender, uint64_t receiver, uint64_t number);

}  // namespace offpath::mpi
