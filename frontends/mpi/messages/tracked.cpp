// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/tracked.hpp"

#include "mpi/job/counters.hpp"
#include "mpi/native/native.hpp"
#include "mpi/recording/service_times.hpp"

#include <exception>

namespace offpath::mpi {

// ---- sends

TicketSend::TicketSend(RouteRef route, Office::Sending sending, int peer)
    : route_(std::move(route)),
      sending_(std::move(sending)),
      peer_(peer),
      ticket_(std::make_unique<TicketBytes>(write_ticket(office.mark(), sending_.ticket))) {}

TicketSend::~TicketSend() { let_go(); }

void TicketSend::let_go() {
  offpath_op_free(std::exchange(sending_.op, nullptr));
  if (ticket_sent_ != MPI_REQUEST_NULL) office.outbox.add(ticket_sent_, std::move(ticket_));
  ticket_sent_ = MPI_REQUEST_NULL;
}

int TicketSend::post(int to, int tag, MPI_Comm comm) {
  office.outbox.tidy();
  const uint64_t synchronous = sending_.ticket.synchronous;
  const auto send = synchronous != 0 ? native.Issend : native.Isend;
  const auto length = static_cast<int>(ticket_length(synchronous));
  return send(ticket_->data(), length, MPI_BYTE, to, tag, comm, &ticket_sent_);
}

bool TicketSend::is_matched() {
  const uint64_t synchronous = sending_.ticket.synchronous;
  if (synchronous == 0) return true;
  int sent = 0;
  native.Test(&ticket_sent_, &sent, MPI_STATUS_IGNORE);
  if (sent == 0 || !office.received(peer_, synchronous)) {
    if (!office.has_lost_process(peer_)) return false;
    error = Office::code_of(OFFPATH_ERR_PEER_LOST);
  }
  office.forget(peer_, synchronous);
  return true;
}

bool TicketSend::is_over() {
  if (!again_) {
    const offpath_status_t status = offpath_op_test(sending_.op);
    if (status == OFFPATH_IN_PROGRESS) return false;
    natively.store(true, std::memory_order_release);
    if (status == OFFPATH_OK || !office.has_lost()) {
      error = status == OFFPATH_OK ? MPI_SUCCESS : Office::code_of(status);
      return true;
    }
    again_.emplace(peer_, sending_.ticket, sending_.payload);
  }
  const std::optional<int> code = again_->advance();
  if (code) error = *code;
  return code.has_value();
}

bool TicketSend::advance() {
  try {
    if (!is_there_) is_there_ = is_over();
  } catch (const std::exception&) {
    return false;  // without memory: the next round tries again
  }
  if (!is_there_ || (error == MPI_SUCCESS && !is_matched())) return false;
  if (recorded_ != recording::kUnrecorded) recording::record_service(recorded_, {&sending_.op, 1}, error);
  let_go();
  if (error != MPI_SUCCESS) office.counts.failed.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// ---- receives

// Whose handler a call that completes requests calls: that of the communicator that the request is of, or of MPI_COMM_WORLD.
#ifdef OPEN_MPI
constexpr bool kTellsOwnCommunicator = true;
#else
constexpr bool kTellsOwnCommunicator = false;
#endif

void TrackedReceive::look(const MPI_Status& status) {
  looked_ = true;
  const Inside inside;
  if (const auto ticket = ticket_of(status, elements_))
    claim_.emplace(*ticket);
  else
    note_received(*route_, status);
}

bool TrackedReceive::over(MPI_Request handle) {
  if (!looked_) {
    int done = 0;
    MPI_Status status;
    const Inside inside;
    if (native.Request_get_status(handle, &done, &status) != MPI_SUCCESS) return true;
    if (done == 0) return false;
    look(status);
  }
  int sent = 1;
  if (other_half_.request != MPI_REQUEST_NULL) native.Test(&other_half_.request, &sent, MPI_STATUS_IGNORE);
  return sent != 0 && (!claim_ || claim_->settled());
}

// Of this start; the next one of a persistent one finds nothing of it.
void TrackedReceive::forget() {
  claim_.reset();
  matched_.reset();
  looked_ = false;
}

int TrackedReceive::end(MPI_Status* status) {
  if (other_half_.request != MPI_REQUEST_NULL) native.Wait(&other_half_.request, MPI_STATUS_IGNORE);
  if (matched_) matched_->correct(status);
  if (!looked_) look(*status);
  int code = MPI_SUCCESS;
  if (claim_) {
    claim_->await();
    const Inside inside;
    code = claim_->deliver(elements_);
    claim_->fill(status);
    if (is_failure(code)) office.counts.failed.fetch_add(1, std::memory_order_relaxed);
  }
  forget();
  return code;
}

bool TrackedReceive::drop() {
  if (other_half_.request != MPI_REQUEST_NULL) native.Wait(&other_half_.request, MPI_STATUS_IGNORE);
  const bool is_ours = matched_ && matched_->again;
  forget();
  return !(kTellsOwnCommunicator && is_ours);
}

void TrackedReceive::show(MPI_Status* status) {
  if (claim_) {
    const Inside inside;
    claim_->deliver(elements_);  // end() says what became of it
  }
  if (status == MPI_STATUS_IGNORE) return;
  if (matched_) matched_->correct(status);
  if (claim_) claim_->fill(status);
}

// ---- persistent ones. Another start of an active one the library refuses, or we do.

PersistentReceive::PersistentReceive(MPI_Request handle, std::unique_ptr<TrackedReceive> receive, int from, int tag)
    : receive_(*receive), held_(*receive.release()), from_(from), tag_(tag) {
  current = handle;
}

int PersistentReceive::start(MPI_Request* handle) {
  if (offloader.find(current) != nullptr) return receive_.raise(MPI_ERR_REQUEST);
  const ReceivedElements& elements = receive_.elements();
  const MPI_Comm comm = receive_.route().comm.load();
  KeptMessages::Posting posting;
  auto matched = office.kept_messages.take(from_, tag_, comm, &posting);
  const bool concerns_us = matched || elements.hold_a_ticket();
  current = *handle;
  int code = MPI_SUCCESS;
  if (matched)
    code = elements.receive(&matched->message, &current);
  else if (concerns_us && comm != MPI_COMM_NULL)
    // Followed, and MPICH 5 takes a persistent one for inactive once it was asked for its status.
    code = elements.receive(from_, tag_, comm, &current);
  else
    code = native.Start(handle);
  receive_.is_of(std::move(matched));
  if (code == MPI_SUCCESS && concerns_us) offloader.follow(current, receive_);
  return code;
}

PersistentSend::PersistentSend(MPI_Request handle, RouteRef route, Begin begin)
    : route_(std::move(route)), begin_(std::move(begin)) {
  current = handle;
}

int PersistentSend::start(MPI_Request* handle) {
  if (offloader.find(current) != nullptr) return route_->raise(MPI_ERR_REQUEST);
  if (begin_(&current)) return MPI_SUCCESS;
  current = *handle;
  return native.Start(handle);
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
  if (is_failure(code)) office.counts.failed.fetch_add(1, std::memory_order_relaxed);
  return code;
}

}  // namespace offpath::mpi
