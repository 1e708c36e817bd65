// SPDX-License-Identifier: BSD-3-Clause
// The office as a receiver: the room that it grants, and what is in it.
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace offpath::mpi {

bool Office::may_reach(int from) const { return on() && from != MPI_PROC_NULL && !Inside::here(); }

bool Office::may_send_tickets(int from) const {
  if (from < 0 || from == job.rank()) return false;
  return job.node_of(from) == job.node_of(job.rank()) ? near_ : far_;
}

std::byte* Office::find(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  const auto in = incoming_.find(static_cast<int>(ticket.sender));
  if (in == incoming_.end() || ticket.region == 0 || ticket.region > in->second.regions.size()) return nullptr;
  const Region& region = in->second.regions[ticket.region - 1];
  const bool fits = ticket.bytes < region.bytes && ticket.offset <= region.bytes - ticket.bytes - kSignalBytes;
  return fits ? region.memory + ticket.offset : nullptr;
}

bool Office::arrived(const Ticket& ticket, const std::byte* payload) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(payload + ticket.bytes), __ATOMIC_ACQUIRE) == ticket.signal;
}

void Office::note_arrival(const Ticket& ticket, std::byte* payload) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(payload + ticket.bytes), ticket.signal, __ATOMIC_RELEASE);
}

bool Office::was_taken(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  return incoming_[static_cast<int>(ticket.sender)].regions[ticket.region - 1].released.was_released(ticket.begin);
}

void Office::release(const Ticket& ticket) {
  const auto from = static_cast<int>(ticket.sender);
  std::lock_guard lock(mutex_);
  Incoming& in = incoming_[from];
  RingReleaser& released = in.regions[ticket.region - 1].released;
  // The sender asks for no more room in a region that was replaced, or is of a window before.
  const bool is_used = ticket.region == in.regions.size() && ticket.region > in.past;
  if (!released.release(ticket.begin, ticket.end) || !is_used) return;
  const uint64_t word = ticket.region << kPositionBits | released.taken();
  put(from, offsetof(Entry, taken), &word, sizeof(word));  // where that fails the sender will not send any more either
}

// After a loss by words only: some puts would still arrive, and their sender would take the word for newer.
bool Office::hold(int from, uint64_t synchronous) {
  if (has_lost() && !resending.may_come(from, bit_of(synchronous))) return false;
  offpath_op_t* told = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto in = incoming_.find(from);
    if (in == incoming_.end()) return false;  // it has no room here, and so no tickets
    in->second.holds = true;
    const uint64_t held = in->second.held |= bit_of(synchronous);
    if (!has_lost()) put(from, offsetof(Entry, held), &held, sizeof(held), &told);
  }
  const bool heard = told != nullptr && offpath_op_wait(told, UINT64_MAX) == OFFPATH_OK;
  offpath_op_free(told);
  if (heard) return true;
  resending.say_held(from);
  const auto begin = std::chrono::steady_clock::now();
  for (Waiter waiter; !resending.is_heard(from) && !has_lost_process(from); waiter.pause()) {
    if (std::chrono::steady_clock::now() - begin > job.settings().loss_timeout) break;
    resending.listen();
  }
  return true;
}

void Office::let_go(int from, uint64_t synchronous) {
  {
    std::lock_guard lock(mutex_);
    const auto in = incoming_.find(from);
    if (in == incoming_.end()) return;
    const uint64_t held = in->second.held &= ~bit_of(synchronous);
    if (!has_lost() && put(from, offsetof(Entry, held), &held, sizeof(held)) == OFFPATH_OK) return;
  }
  resending.say_held(from);
}

uint64_t Office::held_from(int from) {
  std::lock_guard lock(mutex_);
  return incoming_[from].held;
}

void Office::consider(int from) {
  const uint64_t wish = __atomic_load_n(&table_.load()[from].wish, __ATOMIC_ACQUIRE);
  if (wish == 0 || wish >= kPositions) return;
  std::lock_guard lock(mutex_);
  if (tables_[static_cast<size_t>(from)] == 0) return;  // after a loss: later it may be told of room
  Incoming& in = incoming_[from];
  const bool fits = in.regions.size() > in.past && ring_bytes(wish) <= in.regions.back().bytes;
  if (fits || (in.refused != 0 && wish >= in.refused)) return;
  if (!grant(from, in, wish)) in.refused = wish;
}

bool Office::grant(int to, Incoming& in, uint64_t payload) {
  const uint64_t used = staging_bytes_.load(std::memory_order_relaxed);
  const uint64_t left = most_staging_bytes_ > used ? most_staging_bytes_ - used : 0;
  const uint64_t needed = ring_bytes(payload);
  if (needed > left || window_ == nullptr || offpath_session_alive(session_) == 0) return false;
  uint64_t bytes = std::max(kMessagesOfARegion * needed, kLeastRegion);
  bytes = std::min(bytes, std::max(left / 2, needed)) / kRingUnit * kRingUnit;  // others will come
  in.regions.reserve(in.regions.size() + 1);
  void* memory = nullptr;
  if (offpath_memory_allocate(session_, bytes, &memory) != OFFPATH_OK) return false;
  Grant grant{in.regions.size() + 1, reinterpret_cast<uint64_t>(memory), bytes, 0};
  grant.check = Grant::check_of(grant.number, grant.address, grant.bytes);
  const bool opened = offpath_window_attach(window_, memory, bytes) == OFFPATH_OK;
  if (!opened || put(to, offsetof(Entry, grant), &grant, sizeof(grant)) != OFFPATH_OK) {
    if (opened) offpath_window_detach(window_, memory);
    offpath_memory_free(session_, memory);
    return false;
  }
  in.regions.push_back({session_, static_cast<std::byte*>(memory), bytes, {}});
  staging_bytes_.store(used + bytes, std::memory_order_relaxed);
  return true;
}

}  // namespace offpath::mpi
