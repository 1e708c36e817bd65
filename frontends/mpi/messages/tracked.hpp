// SPDX-License-Identifier: BSD-3-Clause
// Requests of point-to-point messages that concern us: sends whose payload goes through the services, and receives that may
// get a ticket.
//
// Threads: of a request one at a time, as MPI has it; sends under the offloader's lock.
#pragma once

#include "mpi/lanes/offloader.hpp"
#include "mpi/messages/claim.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/messages/resending.hpp"
#include "mpi/native/standing.hpp"
#include "mpi/recording/decision.hpp"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

namespace offpath::mpi {

// The program's request is a generalized one: what stands for the ticket, a library may share among many (MPICH does), or
// complete only when the receiver has looked (Open MPI in shared memory).
class TicketSend : public Loose {
 public:
  TicketSend(RouteRef route, Office::Sending sending, int peer);
  ~TicketSend() override;

  // Sends the ticket natively. MPI error code.
  int post(int to, int tag, MPI_Comm comm);

  bool advance() override;
  bool waits_for_programs() const override { return is_there_; }
  void leave() override { let_go(); }
  bool goes_beside_native() const override { return true; }
  int raise(int code) const override { return route_->raise(code); }

 private:
  // The payload has arrived, or never will: `error` says so then.
  bool is_over();
  // A receive has matched it, if that is what its end means.
  bool is_matched();
  void let_go();

  RouteRef route_;
  Office::Sending sending_;
  int peer_;  // in MPI_COMM_WORLD
  bool is_there_ = false;
  std::optional<Again> again_;
  uint64_t recorded_ = recording::decision.operation;
  std::unique_ptr<TicketBytes> ticket_;
  MPI_Request ticket_sent_ = MPI_REQUEST_NULL;
};

// A native send that a receive's request stands for, too, and the copy that it sends unless it sends the program's
// memory.
struct OtherHalf {
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<std::byte> copy = {};
};

class TrackedReceive : public Requested {
 public:
  TrackedReceive(RouteRef route, ReceivedElements&& elements)
      : route_(std::move(route)), elements_(std::move(elements)) {}
  const Route& route() const { return *route_; }
  const ReceivedElements& elements() const { return elements_; }
  // The application may free its datatype from here on. `how`: keep or keep_handle. MPI error code. May throw bad_alloc.
  int keep(int (ReceivedElements::*how)()) {
    const Inside inside;
    return (elements_.*how)();
  }
  // What it receives.
  void is_of(std::optional<Matched> matched) { matched_ = std::move(matched); }
  void goes_with(OtherHalf&& other_half) { other_half_ = std::move(other_half); }

  bool is_generalized() const override { return false; }
  bool over(MPI_Request handle) override;
  bool at_service() const override { return claim_.has_value(); }
  bool goes_beside_native() const override { return true; }
  int end(MPI_Status* status) override;
  bool drop() override;
  void show(MPI_Status* status) override;
  int raise(int code) const override { return route_->raise(code); }

 private:
  void look(const MPI_Status& status);
  void forget();

  RouteRef route_;
  ReceivedElements elements_;
  std::optional<Matched> matched_;
  bool looked_ = false;
  std::optional<Claim> claim_;
  OtherHalf other_half_;
};

class PersistentReceive : public Standing {
 public:
  // The application may free its datatype: `receive` keeps it.
  PersistentReceive(MPI_Request handle, std::unique_ptr<TrackedReceive> receive, int from, int tag);
  int start(MPI_Request* handle) override;

 private:
  TrackedReceive& receive_;
  Held held_;
  int from_;
  int tag_;
};

// Each start decides anew how the message goes.
class PersistentSend : public Standing {
 public:
  // Puts a payload on its way; false: it has no room for it.
  using Begin = std::function<bool(MPI_Request* sent)>;
  PersistentSend(MPI_Request handle, RouteRef route, Begin begin);
  int start(MPI_Request* handle) override;

 private:
  RouteRef route_;
  Begin begin_;
};

// After a native receive that has brought what `status` says: a region may be granted to whom it came from.
void note_received(const Route& route, const MPI_Status& status);
// As the tail of a receive that is not tracked: exchanges a ticket for its payload, awaits it. MPI error code; nobody was
// told. May throw bad_alloc.
int receive_payload(const Route& route, ReceivedElements& elements, MPI_Status* status);

}  // namespace offpath::mpi
