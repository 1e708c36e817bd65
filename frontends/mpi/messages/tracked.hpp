// SPDX-License-Identifier: BSD-3-Clause
// Requests of point-to-point messages that concern us, by the application's handles: sends whose payload goes through the
// services, and receives that may get a ticket. The functions that complete requests (completion.cpp) look here.
//
// Threads: the table any; of a request one at a time, as MPI has it.
#pragma once

#include "mpi/messages/claim.hpp"
#include "mpi/messages/kept.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/messages/routes.hpp"
#include "mpi/recording/decision.hpp"

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace offpath::mpi {

class Tracked {
 public:
  explicit Tracked(RouteRef route) : route_(std::move(route)) {}
  Tracked(const Tracked&) = delete;
  Tracked& operator=(const Tracked&) = delete;
  virtual ~Tracked() = default;

  // Whether the native request is complete, and nothing else is left to wait for. Never waits. May throw bad_alloc.
  virtual bool ready(MPI_Request native_request) = 0;
  // Its part is at a service, so a wait for it may sleep.
  virtual bool at_service() const = 0;
  // What has to be waited for before the native request is waited for.
  virtual void before() {}
  // After the native request has completed without an error. MPI error code; nobody was told. May throw bad_alloc.
  virtual int after(MPI_Status* status) = 0;
  // The status of one that is ready, which is not completed yet.
  virtual void show(MPI_Status*) const {}
  virtual bool is_send() const = 0;
  // Starts a persistent one, whose handle that is. MPI error code after the handler was called.
  virtual int start(MPI_Request*) { return MPI_ERR_REQUEST; }
  int raise(int code) const { return route_->raise(code); }

  // Persistent: between two starts it is none of ours.
  bool persistent = false;
  bool active = true;
  // What the library completes in place of the application's handle; null: that itself.
  MPI_Request stands = MPI_REQUEST_NULL;

 protected:
  RouteRef route_;
};
using TrackedRef = std::shared_ptr<Tracked>;

// The program's request is a generalized one: what stands for the ticket, a library may share among many (MPICH does), or
// complete only when the receiver has looked (Open MPI in shared memory).
class TrackedSend : public Tracked {
 public:
  TrackedSend(RouteRef route, Office::Sending sending, int peer);
  ~TrackedSend() override;

  // Sends the ticket natively and makes the program's request. MPI error code.
  int post(int to, int tag, MPI_Comm comm, MPI_Request* request);

  bool ready(MPI_Request native_request) override;
  bool at_service() const override;
  void before() override;
  int after(MPI_Status* status) override;
  bool is_send() const override { return true; }

 private:
  bool is_over();
  // A receive has matched it, if that is what its end means.
  bool is_matched();

  Office::Sending sending_;
  int peer_;                // in MPI_COMM_WORLD
  int lost_ = MPI_SUCCESS;  // nobody will say whether it was received
  uint64_t recorded_ = recording::decision.operation;
  std::unique_ptr<TicketBytes> ticket_;
  MPI_Request ticket_sent_ = MPI_REQUEST_NULL;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool completed_ = false;
};

// A native send that a receive's request stands for, too, and the copy that it sends unless it sends the program's
// memory.
struct OtherHalf {
  MPI_Request request = MPI_REQUEST_NULL;
  std::vector<std::byte> copy = {};
};

class TrackedReceive : public Tracked {
 public:
  TrackedReceive(RouteRef route, ReceivedElements&& elements)
      : Tracked(std::move(route)), elements_(std::move(elements)) {}
  // What it receives.
  void is_of(const Matched& matched) { matched_ = matched; }
  void goes_with(OtherHalf&& other_half) { other_half_ = std::move(other_half); }
  // The application may free its datatype from here on. MPI error code.
  int keep();

  bool ready(MPI_Request native_request) override;
  bool at_service() const override { return claim_.has_value(); }
  int after(MPI_Status* status) override;
  void show(MPI_Status* status) const override;
  bool is_send() const override { return false; }

 protected:
  ReceivedElements elements_;
  std::optional<Matched> matched_;

 private:
  void look(const MPI_Status& status);

  bool looked_ = false;
  std::optional<Claim> claim_;
  OtherHalf other_half_;
};

class PersistentReceive : public TrackedReceive {
 public:
  PersistentReceive(RouteRef route, ReceivedElements&& elements, int from, int tag)
      : TrackedReceive(std::move(route), std::move(elements)), from_(from), tag_(tag) {
    persistent = true;
    active = false;
  }
  int keep();
  int start(MPI_Request* handle) override;

 private:
  int from_;
  int tag_;
};

// Each start decides anew how the message goes.
class PersistentSend : public Tracked {
 public:
  // Puts a payload on its way, or has no room for it.
  using Begin = std::function<TrackedRef(MPI_Request* sent)>;
  PersistentSend(RouteRef route, Begin begin) : Tracked(std::move(route)), begin_(std::move(begin)) {
    persistent = true;
    active = false;
  }
  int start(MPI_Request* handle) override;

  bool ready(MPI_Request native_request) override { return current_->ready(native_request); }
  bool at_service() const override { return current_->at_service(); }
  void before() override { current_->before(); }
  int after(MPI_Status* status) override;
  bool is_send() const override { return true; }

 private:
  Begin begin_;
  TrackedRef current_;
};

class TrackedTable {
 public:
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // May throw bad_alloc.
  void add(MPI_Request request, TrackedRef tracked);
  // Those that are started; nullptr: none of ours.
  TrackedRef find(MPI_Request request) const;
  // Those that are not, too.
  TrackedRef find_any(MPI_Request request) const;
  void remove(MPI_Request request);
  void clear();

 private:
  std::atomic<size_t> count_{0};  // to know without the lock that there are none
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, TrackedRef> entries_;
};

extern TrackedTable tracked;

// After a native receive that has brought what `status` says: a region may be granted to whom it came from.
void note_received(const Route& route, const MPI_Status& status);
// As the tail of a receive that is not tracked: exchanges a ticket for its payload, awaits it. MPI error code; nobody was
// told. May throw bad_alloc.
int receive_payload(const Route& route, ReceivedElements& elements, MPI_Status* status);

}  // namespace offpath::mpi
