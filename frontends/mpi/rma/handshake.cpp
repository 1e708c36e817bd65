// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/handshake.hpp"

#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/native.hpp"

namespace offpath::mpi {
namespace {

constexpr int kPostTag = 1;
constexpr int kCompleteTag = 2;
constexpr int kPolls = 100;  // before the first long sleep, which would cost more than a message takes

bool all_done(std::vector<MPI_Request>* requests) {
  const Inside inside;
  int done = 0;
  const int count = static_cast<int>(requests->size());
  return native.Testall(count, requests->data(), &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS || done != 0;
}

void wait_all(std::vector<MPI_Request>* requests) {
  if (all_done(requests)) return;
  const WaitTimer timer;
  Waiter waiter;
  for (int i = 0; i < kPolls; ++i) {
    waiter.poll();
    if (all_done(requests)) return;
  }
  for (;;) {
    offloader.progress();
    if (all_done(requests)) return;
    const bool no_thread = native.call_in_rounds != nullptr;  // that would need the library's lock meanwhile
    offloader.looks_often() && no_thread ? waiter.poll() : waiter.pause();
  }
}

void send_empty(int to, int tag, MPI_Comm comm) {
  const Inside inside;
  MPI_Request request = MPI_REQUEST_NULL;
  // Nobody needs to know when it has left.
  if (native.Isend(nullptr, 0, MPI_BYTE, to, tag, comm, &request) == MPI_SUCCESS) native.Request_free(&request);
}

std::vector<MPI_Request> receive_empty(const std::vector<int>& from, int tag, MPI_Comm comm) {
  const Inside inside;
  std::vector<MPI_Request> requests(from.size(), MPI_REQUEST_NULL);
  for (size_t i = 0; i < from.size(); ++i) native.Irecv(nullptr, 0, MPI_BYTE, from[i], tag, comm, &requests[i]);
  return requests;
}

}  // namespace

void Handshake::barrier() {
  std::vector<MPI_Request> request(1, MPI_REQUEST_NULL);
  {
    const Inside inside;
    native.Ibarrier(comm_, request.data());
  }
  wait_all(&request);
}

void Handshake::sum(int64_t* numbers, int count) {
  std::vector<MPI_Request> request(1, MPI_REQUEST_NULL);
  {
    const Inside inside;
    native.Iallreduce(MPI_IN_PLACE, numbers, count, MPI_INT64_T, MPI_SUM, comm_, request.data());
  }
  wait_all(&request);
}

void Handshake::post(const std::vector<int>& origins, bool tells) {
  completions_ = receive_empty(origins, kCompleteTag, comm_);
  for (const int origin : origins) {
    if (tells) send_empty(origin, kPostTag, comm_);
  }
}

void Handshake::start(const std::vector<int>& targets) {
  std::vector<MPI_Request> requests = receive_empty(targets, kPostTag, comm_);
  wait_all(&requests);
}

void Handshake::complete(const std::vector<int>& targets) {
  for (const int target : targets) send_empty(target, kCompleteTag, comm_);
}

void Handshake::wait() {
  wait_all(&completions_);
  completions_.clear();
}

bool Handshake::test() {
  offloader.progress();
  if (!all_done(&completions_)) return false;
  completions_.clear();
  return true;
}

}  // namespace offpath::mpi
