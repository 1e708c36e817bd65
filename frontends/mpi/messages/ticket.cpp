// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/ticket.hpp"

#include <cstring>

namespace offpath::mpi {
namespace {

constexpr size_t kWords = sizeof(TicketBytes) / sizeof(uint64_t);
using Words = std::array<uint64_t, kWords>;
using Said = std::array<uint64_t, 8>;

Said said_by(const Ticket& t) {
  return {t.sender, t.bytes, t.region, t.begin, t.end, t.offset, t.signal, t.synchronous};
}

// Mixes all bits of a word with all others (the finalizer of splitmix64).
uint64_t mix(uint64_t word) {
  word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9;
  word = (word ^ word >> 27) * 0x94D049BB133111EB;
  return word ^ word >> 31;
}

// The mark, what is said, and a sequence that depends on both.
Words words_of(const Mark& mark, const Ticket& ticket) {
  Words words;
  size_t at = 0;
  uint64_t state = 0;
  for (const uint64_t word : mark) state = mix(state ^ (words[at++] = word));
  for (const uint64_t word : said_by(ticket)) state = mix(state ^ (words[at++] = word));
  while (at < kWords) words[at++] = mix(state += 0x9E3779B97F4A7C15);
  return words;
}

}  // namespace

TicketBytes write_ticket(const Mark& mark, const Ticket& ticket) {
  const Words words = words_of(mark, ticket);
  TicketBytes bytes;
  static_assert(sizeof(words) == sizeof(bytes));
  memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

std::optional<Ticket> read_ticket(const Mark& mark, const std::byte* bytes) {
  if (memcmp(bytes, mark.data(), sizeof(mark)) != 0) return std::nullopt;
  Said said;
  memcpy(said.data(), bytes + sizeof(mark), sizeof(said));
  const Ticket ticket{said[0], said[1], said[2], said[3], said[4], said[5], said[6], said[7]};
  const TicketBytes whole = write_ticket(mark, ticket);
  if (memcmp(bytes, whole.data(), kTicketBytes) != 0) return std::nullopt;
  return ticket;
}

uint64_t signal_of(const Mark& mark, uint64_t sender, uint64_t receiver, uint64_t number) {
  return mix(mix(mix(mark[0] ^ sender) ^ mark[1] ^ receiver) ^ mark[2] ^ number);
}

}  // namespace offpath::mpi
