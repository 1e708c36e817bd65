// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/tracked.hpp"

#include "mpi/job/counters.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/messages/completion.hpp"
#include "mpi/messages/counts.hpp"
#include "mpi/messages/rounds.hpp"
#include "mpi/messages/sent_tickets.hpp"
#include "mpi/native/handle_table.hpp"
#include "mpi/native/native.hpp"
#include "mpi/recording/service_times.hpp"

namespace offpath::mpi {

TrackedTable tracked;

// ---- sends

namespace {

int query_sent(void*, MPI_Status* status) {
  native.Status_set_elements(status, MPI_BYTE, 0);
  native.Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_ANY_SOURCE;
  status->MPI_TAG = MPI_ANY_TAG;
  return MPI_SUCCESS;
}
int free_sent(void*) { return MPI_SUCCESS; }
int cancel_sent(void*, int) { return MPI_SUCCESS; }

}  // namespace

TrackedSend::TrackedSend(RouteRef route, Office::Sending sending, int peer)
    : Tracked(std::move(route)),
      sending_(std::move(sending)),
      peer_(peer),
      ticket_(std::make_unique<TicketBytes>(write_ticket(office.mark(), sending_.ticket))) {}

TrackedSend::~TrackedSend() {
  offpath_op_free(sending_.op);
  if (ticket_sent_ != MPI_REQUEST_NULL) sent_tickets.add(ticket_sent_, std::move(ticket_));
}

int TrackedSend::post(int to, int tag, MPI_Comm comm, MPI_Request* request) {
  sent_tickets.tidy();
  const uint64_t synchronous = sending_.ticket.synchronous;
  const auto send = synchronous != 0 ? native.Issend : native.Isend;
  const auto length = static_cast<int>(ticket_length(synchronous));
  int code = send(ticket_->data(), length, MPI_BYTE, to, tag, comm, &ticket_sent_);
  if (code == MPI_SUCCESS) code = native.Grequest_start(&query_sent, &free_sent, &cancel_sent, nullptr, &request_);
  if (code == MPI_SUCCESS) *request = request_;
  return code;
}

bool TrackedSend::at_service() const { return offpath_op_test(sending_.op) == OFFPATH_IN_PROGRESS; }

bool TrackedSend::is_matched() {
  const uint64_t synchronous = sending_.ticket.synchronous;
  if (synchronous == 0) return true;
  int sent = 0;
  beneath.Test(&ticket_sent_, &sent, MPI_STATUS_IGNORE);
  if (sent == 0) return false;
  if (!office.received(peer_, synchronous)) {
    lost_ = office.lost(peer_);
    if (lost_ == MPI_SUCCESS) return false;
  }
  office.forget(peer_, synchronous);
  return true;
}

bool TrackedSend::is_over() {
  if (completed_) return true;
  if (at_service() || !is_matched()) return false;
  native.Grequest_complete(request_);
  return completed_ = true;
}

bool TrackedSend::ready(MPI_Request) {
  const Inside inside;
  return is_over();
}

void TrackedSend::before() {
  if (ready(request_)) return;
  const WaitTimer timer;
  Waiter waiter;
  for (;;) {
    move_on();
    if (ready(request_)) return;
    if (at_service())
      waiter.pause();
    else
      waiter.poll();
  }
}

int TrackedSend::after(MPI_Status*) {
  const offpath_status_t status = offpath_op_test(sending_.op);
  const int code = status == OFFPATH_OK ? lost_ : Office::code_of(status);
  if (recorded_ != recording::kUnrecorded) recording::record_service(recorded_, {&sending_.op, 1}, code);
  if (code == MPI_SUCCESS) return code;
  counts.failed.fetch_add(1, std::memory_order_relaxed);
  if (offpath_session_alive(job.session()) == 0) job.report_lost_service();
  return code;
}

// ---- receives

int TrackedReceive::keep() {
  const Inside inside;
  return elements_.keep();
}

void TrackedReceive::look(const MPI_Status& status) {
  looked_ = true;
  const Inside inside;
  if (const auto ticket = ticket_of(status, elements_))
    claim_.emplace(*ticket);
  else
    note_received(*route_, status);
}

bool TrackedReceive::ready(MPI_Request native_request) {
  if (!looked_) {
    int done = 0;
    MPI_Status status;
    const Inside inside;
    if (beneath.Request_get_status(native_request, &done, &status) != MPI_SUCCESS) return true;
    if (done == 0) return false;
    look(status);
  }
  int sent = 1;
  if (other_half_.request != MPI_REQUEST_NULL) beneath.Test(&other_half_.request, &sent, MPI_STATUS_IGNORE);
  return sent != 0 && (!claim_ || claim_->settled());
}

int TrackedReceive::after(MPI_Status* status) {
  if (other_half_.request != MPI_REQUEST_NULL) beneath.Wait(&other_half_.request, MPI_STATUS_IGNORE);
  if (matched_) matched_->correct(status);
  if (!looked_) look(*status);
  int code = MPI_SUCCESS;
  if (claim_) {
    claim_->await();
    const Inside inside;
    code = claim_->deliver(elements_);
    claim_->fill(status);
    if (is_failure(code)) counts.failed.fetch_add(1, std::memory_order_relaxed);
  }
  claim_.reset();
  matched_.reset();
  looked_ = false;
  return code;
}

void TrackedReceive::show(MPI_Status* status) const {
  if (matched_) matched_->correct(status);
  if (claim_) claim_->fill(status);
}

int PersistentReceive::keep() {
  const Inside inside;
  return elements_.keep_handle();
}

int PersistentReceive::start(MPI_Request* handle) {
  KeptMessages::Posting posting;
  matched_ = kept_messages.take(from_, tag_, route_->comm.load(), &posting);
  const int code = matched_ ? elements_.receive(&matched_->message, &stands) : beneath.Start(handle);
  active = code == MPI_SUCCESS && (matched_ || elements_.hold_a_ticket());
  return code;
}

// ---- persistent sends

int PersistentSend::start(MPI_Request* handle) {
  current_ = begin_(&stands);
  active = current_ != nullptr;
  return active ? MPI_SUCCESS : beneath.Start(handle);
}

int PersistentSend::after(MPI_Status* status) {
  const int code = current_->after(status);
  current_.reset();
  return code;
}

void note_received(const Route& route, const MPI_Status& status) {
  int bytes = 0;
  native.Get_count(&status, MPI_BYTE, &bytes);
  // More than an int counts is undefined, and long.
  const uint64_t length = bytes < 0 ? uint64_t{1} << 31 : static_cast<uint64_t>(bytes);
  if (length < office.least_bytes()) return;
  const int from = route.world_rank(status.MPI_SOURCE);
  if (from >= 0 && office.offloads(from, length)) office.consider(from);
}

int receive_payload(const Route& route, ReceivedElements& elements, MPI_Status* status) {
  std::optional<Ticket> ticket;
  {
    const Inside inside;
    ticket = ticket_of(*status, elements);
    if (!ticket) {
      note_received(route, *status);
      return MPI_SUCCESS;
    }
  }
  Claim claim(*ticket);
  claim.await();
  const Inside inside;
  const int code = claim.deliver(elements);
  claim.fill(status);
  if (is_failure(code)) counts.failed.fetch_add(1, std::memory_order_relaxed);
  return code;
}

// ---- the table

void TrackedTable::add(MPI_Request request, TrackedRef entry) {
  std::lock_guard lock(mutex_);
  entries_.insert_or_assign(handle_key(request), std::move(entry));
  count_.store(entries_.size(), std::memory_order_release);
}

TrackedRef TrackedTable::find_any(MPI_Request request) const {
  if (empty()) return nullptr;
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(handle_key(request));
  return found == entries_.end() ? nullptr : found->second;
}

TrackedRef TrackedTable::find(MPI_Request request) const {
  TrackedRef found = find_any(request);
  return found != nullptr && found->active ? found : nullptr;
}

void TrackedTable::remove(MPI_Request request) {
  TrackedRef gone;  // dies without the lock: it may free datatypes
  std::lock_guard lock(mutex_);
  const auto found = entries_.find(handle_key(request));
  if (found == entries_.end()) return;
  gone = std::move(found->second);
  entries_.erase(found);
  count_.store(entries_.size(), std::memory_order_release);
}

void TrackedTable::clear() {
  decltype(entries_) gone;
  std::lock_guard lock(mutex_);
  gone.swap(entries_);
  count_.store(0, std::memory_order_release);
}

}  // namespace offpath::mpi
