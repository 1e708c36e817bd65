// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/kept.hpp"

#include "mpi/messages/office.hpp"
#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"

#include <algorithm>
#include <exception>
#include <utility>

namespace offpath::mpi {

namespace {

constexpr int kAgainTag = 1;

// 0: the message is no ticket by its length.
int length_of_ticket(const MPI_Status& status) {
  int bytes = 0;
  return native.Get_count(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && synchronous_of(bytes) ? bytes : 0;
}

bool is_of(const MPI_Status& status, int from, int tag) {
  return (from == MPI_ANY_SOURCE || from == status.MPI_SOURCE) && (tag == MPI_ANY_TAG || tag == status.MPI_TAG);
}

}  // namespace

int KeptMessages::open(bool several_threads) {
  several_threads_ = several_threads;
  const int code = native.Comm_dup(MPI_COMM_SELF, &self_);
  return code == MPI_SUCCESS ? native.Comm_set_errhandler(self_, MPI_ERRORS_RETURN) : code;
}

// What the program has left behind stays in the library.
void KeptMessages::close() {
  std::lock_guard lock(mutex_);
  kept_.clear();
  handed_out_.clear();
  count_.store(0, std::memory_order_release);
  if (self_ != MPI_COMM_NULL) native.Comm_free(&self_);
}

bool KeptMessages::matches(const Matched& kept, int from, int tag, MPI_Comm comm) {
  return comm != MPI_COMM_NULL && kept.route->comm.load(std::memory_order_relaxed) == comm &&
         is_of(kept.status, from, tag);
}

bool KeptMessages::is_wanted(const MPI_Status& status, MPI_Comm comm) const {
  return std::any_of(wanted_.begin(), wanted_.end(),
                     [&](const Wanted& one) { return one.comm == comm && is_of(status, one.from, one.tag); });
}

KeptMessages::List::iterator KeptMessages::find(int from, int tag, MPI_Comm comm) {
  return std::find_if(kept_.begin(), kept_.end(), [&](const Matched& kept) { return matches(kept, from, tag, comm); });
}

// To have a message of the library with those bytes.
void KeptMessages::send_again(const TicketBytes& bytes, int length, Matched& matched) {
  office.outbox.tidy();
  auto again = std::make_unique<TicketBytes>(bytes);
  MPI_Request sent = MPI_REQUEST_NULL;
  const int code = native.Isend(again->data(), length, MPI_BYTE, 0, kAgainTag, self_, &sent);
  if (code != MPI_SUCCESS) return;
  office.outbox.add(sent, std::move(again));
  MPI_Status ignored;
  native.Mprobe(0, kAgainTag, self_, &matched.message, &ignored);
  matched.again = true;
}

// Only who receives it sees what is in it.
void KeptMessages::look_into(Matched& matched) {
  const int length = length_of_ticket(matched.status);
  if (length == 0) return;
  TicketBytes bytes;
  MPI_Status ignored;
  matched.held = *synchronous_of(length);
  const int from = matched.route->world_rank(matched.status.MPI_SOURCE);
  if (matched.held != 0 && !office.hold(from, matched.held)) matched.held = 0;
  if (native.Mrecv(bytes.data(), length, MPI_BYTE, &matched.message, &ignored) != MPI_SUCCESS) return;
  const auto ticket = read_ticket(office.mark(), bytes.data());
  if (ticket) native.Status_set_elements_x(&matched.status, MPI_BYTE, static_cast<MPI_Count>(ticket->bytes));
  if (!ticket) let_go(matched);
  send_again(bytes, length, matched);
}

void KeptMessages::let_go(Matched& matched) {
  const uint64_t held = std::exchange(matched.held, 0);
  if (held != 0) office.let_go(matched.route->world_rank(matched.status.MPI_SOURCE), held);
}

int KeptMessages::probe(int from, int tag, const RouteRef& route, MPI_Comm comm, int* found, MPI_Status* status) {
  std::lock_guard lock(mutex_);
  if (const auto kept = find(from, tag, comm); kept != kept_.end()) {
    *found = 1;
    show(kept->status, status);
    return MPI_SUCCESS;
  }
  MPI_Status seen{};  // MPICH leaves a part of it as it was
  const int code = native.Iprobe(from, tag, comm, found, &seen);
  if (code != MPI_SUCCESS || *found == 0) return code;
  if (length_of_ticket(seen) == 0) {
    show(seen, status);
    return code;
  }
  const int sender = seen.MPI_SOURCE;
  *found = 0;
  for (;;) {
    Matched matched;
    matched.route = route;
    int taken = 0;
    int failed = native.Iprobe(sender, MPI_ANY_TAG, comm, &taken, &seen);
    if (failed != MPI_SUCCESS || taken == 0 || is_wanted(seen, comm)) return failed;
    failed = native.Improbe(sender, seen.MPI_TAG, comm, &taken, &matched.message, &matched.status);
    if (failed != MPI_SUCCESS || taken == 0) return failed;  // another thread was faster
    const Inside inside;
    look_into(matched);
    kept_.push_back(std::move(matched));
    count_.store(kept_.size(), std::memory_order_release);
    if (!matches(kept_.back(), from, tag, comm)) continue;
    *found = 1;
    show(kept_.back().status, status);
    return MPI_SUCCESS;
  }
}

int KeptMessages::match(int from, int tag, const RouteRef& route, MPI_Comm comm, int* found, Matched* matched) {
  std::lock_guard lock(mutex_);
  if (const auto kept = find(from, tag, comm); kept != kept_.end()) {
    *found = 1;
    *matched = std::move(*kept);
    kept_.erase(kept);
    count_.store(kept_.size(), std::memory_order_release);
    return MPI_SUCCESS;
  }
  matched->route = route;
  const int code = native.Improbe(from, tag, comm, found, &matched->message, &matched->status);
  if (code != MPI_SUCCESS || *found == 0 || matched->message == MPI_MESSAGE_NO_PROC) return code;
  const Inside inside;
  look_into(*matched);
  return code;
}

std::optional<Matched> KeptMessages::take(int from, int tag, MPI_Comm comm, Posting* posting) {
  if (empty() && !several_threads_) return std::nullopt;
  std::lock_guard lock(mutex_);
  const auto kept = find(from, tag, comm);
  if (kept == kept_.end()) {
    if (several_threads_) note(posting, {from, tag, comm});
    return std::nullopt;
  }
  std::optional<Matched> taken = std::move(*kept);
  kept_.erase(kept);
  count_.store(kept_.size(), std::memory_order_release);
  let_go(*taken);
  return taken;
}

// Without memory for it a probe may be faster.
void KeptMessages::note(Posting* posting, const Wanted& wanted) noexcept {
  try {
    posting->place_ = wanted_.insert(wanted_.end(), wanted);
  } catch (const std::exception&) {
  }
}

KeptMessages::Posting::~Posting() {
  if (!place_) return;
  std::lock_guard lock(office.kept_messages.mutex_);
  office.kept_messages.wanted_.erase(*place_);
}

void KeptMessages::hand_out(const Matched& matched) {
  std::lock_guard lock(mutex_);
  handed_out_.insert_or_assign(handle_key(matched.message), matched);
}

std::optional<Matched> KeptMessages::take_back(MPI_Message message) {
  std::lock_guard lock(mutex_);
  const auto found = handed_out_.find(handle_key(message));
  if (found == handed_out_.end()) return std::nullopt;
  std::optional<Matched> matched = std::move(found->second);
  handed_out_.erase(found);
  let_go(*matched);
  return matched;
}

}  // namespace offpath::mpi
