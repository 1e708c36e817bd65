// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/claim.hpp"

#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {
namespace {

constexpr std::chrono::milliseconds kLook{1};  // for losses, which take some microseconds to look for

}  // namespace

Claim::Claim(const Ticket& ticket) : ticket_(ticket), payload_(office.find(ticket)) {
  office.counts.received.fetch_add(1, std::memory_order_relaxed);
  if (payload_ == nullptr) {
    code_ = MPI_ERR_INTERN;
  } else if (office.arrived(ticket_, payload_)) {
    office.counts.ready.fetch_add(1, std::memory_order_relaxed);
  }
}

bool Claim::settled() {
  if (code_ != MPI_SUCCESS || payload_ == nullptr || office.arrived(ticket_, payload_)) return true;
  const auto now = Clock::now();
  if (now < next_look_) return false;
  next_look_ = now + kLook;
  if (!office.has_lost()) return false;
  // Its sender asks whether it is to be sent again. What has arrived lies in our own memory, whatever is lost since.
  {
    const Inside inside;
    office.resending.listen();
  }
  if (office.arrived(ticket_, payload_)) return true;
  const bool never = office.has_lost_process(static_cast<int>(ticket_.sender));
  if (never) code_ = Office::code_of(OFFPATH_ERR_PEER_LOST);
  return never;
}

void Claim::await() {
  if (settled()) return;
  const WaitTimer timer;
  Waiter waiter;
  while (!settled()) {
    offloader.progress();
    move_native();
    if (settled()) return;
    waiter.pause();
  }
}

int Claim::deliver(ReceivedElements& elements) {
  if (code_ != MPI_SUCCESS || payload_ == nullptr) return code_;
  code_ = elements.put(payload_, ticket_.bytes);
  payload_ = nullptr;
  office.release(ticket_);
  return code_;
}

void Claim::fill(MPI_Status* status) const {
  native.Status_set_elements_x(status, MPI_BYTE, static_cast<MPI_Count>(ticket_.bytes));
}

std::optional<Ticket> ticket_of(const MPI_Status& status, ReceivedElements& elements) {
  int bytes = 0;
  if (native.Get_count(&status, MPI_BYTE, &bytes) != MPI_SUCCESS || !synchronous_of(bytes)) return std::nullopt;
  return elements.ticket(office.mark());
}

}  // namespace offpath::mpi
