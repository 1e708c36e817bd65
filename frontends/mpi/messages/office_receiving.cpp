// SPDX-License-Identifier: BSD-3-Clause
// The office as a receiver: the room that it grants, and what is in it.
#include "base/clock.hpp"
#include "client/pages.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace offpath::mpi {
namespace {

constexpr uint64_t kPatienceNs = 1'000'000'000;
constexpr uint64_t kTidyNs = 100'000'000;
constexpr uint64_t kUnusedNs = 1'000'000'000;

}  // namespace

bool Office::may_reach(int from) const { return on() && from != MPI_PROC_NULL && !Inside::here(); }

bool Office::may_send_tickets(int from) const {
  if (from < 0 || from == job.rank()) return false;
  return job.node_of(from) == job.node_of(job.rank()) ? near_ : far_;
}

std::byte* Office::find(const Ticket& ticket, bool again) {
  std::lock_guard lock(mutex_);
  const auto in = incoming_.find(static_cast<int>(ticket.sender));
  Granted::Region* const region = in == incoming_.end() ? nullptr : in->second.granted.find(ticket.region);
  if (region == nullptr || ticket.bytes > region->bytes - kSignalBytes) return nullptr;
  if (ticket.offset > region->bytes - kSignalBytes - ticket.bytes) return nullptr;
  const uint64_t used = std::max(region->used, ticket.offset + ticket.bytes + kSignalBytes);
  used_bytes_ += used - std::exchange(region->used, used);
  most_used_bytes_ = std::max(used_bytes_, most_used_bytes_.load(std::memory_order_relaxed));
  region->stays |= again;
  return region->memory + ticket.offset;
}

bool Office::arrived(const Ticket& ticket, const std::byte* payload) {
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(payload + ticket.bytes), __ATOMIC_ACQUIRE) == ticket.signal;
}

void Office::note_arrival(const Ticket& ticket, std::byte* payload) {
  __atomic_store_n(reinterpret_cast<uint64_t*>(payload + ticket.bytes), ticket.signal, __ATOMIC_RELEASE);
}

bool Office::was_taken(const Ticket& ticket) {
  std::lock_guard lock(mutex_);
  Granted& granted = incoming_[static_cast<int>(ticket.sender)].granted;
  const Granted::Region* const region = granted.find(ticket.region);
  return region == nullptr ? granted.is_over(ticket.region) : region->released.was_released(ticket.begin);
}

void Office::release(const Ticket& ticket) {
  const auto from = static_cast<int>(ticket.sender);
  std::lock_guard lock(mutex_);
  Incoming& in = incoming_[from];
  in.used_ns = base::clock_ns(CLOCK_MONOTONIC_COARSE);
  Granted::Region* const region = in.granted.find(ticket.region);
  if (region == nullptr || !region->released.release(ticket.begin, ticket.end)) return;
  if (!in.granted.is_used(ticket.region)) return;
  const uint64_t word = RingWord::of(ticket.region, region->released.taken());
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
    // Its sender begins no other one of that number before it knows that this one is let go.
    if ((in->second.held & bit_of(synchronous)) != 0) return false;
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
  std::lock_guard lock(mutex_);
  if (tables_[static_cast<size_t>(from)] == 0) return;  // after a loss: later it may be told of room
  const uint64_t wish = __atomic_load_n(&table_.load()[from].wish, __ATOMIC_ACQUIRE);
  if (wish == 0 || wish >= RingWord::kPositions) return;
  Incoming& in = incoming_[from];
  gather(from, in);
  if (!in.granted.is_heard()) return;
  // With one in reserve, as what was used is only given back when there is another one for it.
  const uint64_t small = ring_bytes(least_bytes_);
  const uint64_t needed = ring_bytes(wish), left = Granted::free_bytes(pool_.left(), small);
  const Granted::Region* const newest = in.granted.newest();
  const uint64_t has = newest == nullptr ? 0 : newest->bytes;
  if (needed <= has || (in.refused != 0 && wish >= in.refused)) return;
  const uint64_t wanted = std::max(kMessagesOfARegion * needed, kLeastRegion);
  if (needed <= left && grant(from, in, std::min(wanted, std::max(left / 2, needed)))) return;  // others will come
  // There would be room if it gave back what it has: for a small one, until that is over.
  if (needed <= left + has && has > small && grant(from, in, small)) return;
  in.refused = wish;
  if (has < early_bytes_ && early_bytes_ <= left) grant(from, in, early_bytes_);
}

// Nobody leaves before all know of what they have from the beginning.
void Office::grant_to_all() {
  {
    std::lock_guard lock(mutex_);
    uint64_t senders = 0;
    for (int rank = 0; rank < job.size(); ++rank) senders += may_send_tickets(rank) ? 1 : 0;
    early_bytes_ = Granted::early_bytes(pool_.left(), senders, least_bytes_);
    if (client::may_lack_pages()) early_bytes_ = std::min(early_bytes_, Granted::least_early_bytes(least_bytes_));
    for (int rank = 0; rank < job.size(); ++rank) grant_early(rank);
    offpath_window_flush(window_, kPatienceNs);
  }
  native.Barrier(job.control());
}

void Office::grant_early(int to) {
  if (early_bytes_ != 0 && may_send_tickets(to)) grant(to, incoming_[to], early_bytes_);
}

bool Office::grant(int to, Incoming& in, uint64_t bytes) {
  bytes = bytes / kRingUnit * kRingUnit;
  if (window_ == nullptr || offpath_session_alive(session_) == 0) return false;
  std::byte* const memory = pool_.take(bytes);
  if (memory == nullptr) return false;
  Grant grant{in.granted.next(), reinterpret_cast<uint64_t>(memory), bytes, 0};
  grant.check = Grant::check_of(grant.number, grant.address, grant.bytes);
  in.granted.add(memory, bytes);
  if (put(to, offsetof(Entry, grant), &grant, sizeof(grant)) == OFFPATH_OK) return true;
  in.granted.take_back();
  pool_.give_back(memory, 0);
  return false;
}

void Office::gather(int from, Incoming& in) {
  in.granted.note_left(__atomic_load_n(&table_.load()[from].left, __ATOMIC_ACQUIRE));
  while (const auto over = in.granted.take_over()) give_back(*over);
}

void Office::give_back(const Granted::Region& region) {
  used_bytes_ -= region.used;
  if (pool_.has(region.memory)) {
    pool_.give_back(region.memory, region.used);
    for (auto& [from, in] : incoming_) in.refused = 0;
    return;
  }
  const auto past =
      std::find_if(past_.begin(), past_.end(), [&](const Past& one) { return one.pool.has(region.memory); });
  past->pool.give_back(region.memory, region.used);
}

// As much as was used stays granted, so that a program that sends now and then finds room.
void Office::tidy() {
  const uint64_t now = base::clock_ns(CLOCK_MONOTONIC_COARSE);
  if (now - tidied_ns_ < kTidyNs) return;
  tidied_ns_ = now;
  std::lock_guard lock(mutex_);
  if (broken()) return;
  for (auto& [to, out] : outgoing_) take_grant(to, out);
  for (auto& [from, in] : incoming_) gather(from, in);
  leave_past();
  for (auto& [from, in] : incoming_) {
    const Granted::Region* const newest = in.granted.newest();
    if (newest == nullptr || newest->used == 0 || now - in.used_ns < kUnusedNs || !in.granted.is_heard()) continue;
    const uint64_t bytes = std::min(newest->bytes, std::max(early_bytes_, 2 * newest->used));
    if (grant(from, in, bytes)) continue;
    if (pool_.left() >= ring_bytes(least_bytes_)) grant(from, in, std::min(bytes, pool_.left()));
  }
}

}  // namespace offpath::mpi
