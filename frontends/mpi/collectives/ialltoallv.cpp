// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/collective.hpp"
#include "handlers.hpp"

namespace offpath::mpi {
namespace {

offpath_status_t post(Operation& operation, offpath_team_t* team) {
  std::vector<uint64_t> send_bytes, recv_bytes;
  std::vector<int64_t> send_displs, recv_displs;
  operation.send.fill_service_arrays(&send_bytes, &send_displs);
  operation.recv.fill_service_arrays(&recv_bytes, &recv_displs);
  return offpath_alltoallv(team, operation.send.service_base(), send_bytes.data(), send_displs.data(),
                           operation.recv.service_base(), recv_bytes.data(), recv_displs.data(), &operation.op);
}

int reissue(Operation& operation, MPI_Comm comm, MPI_Request* request) {
  const Blocks& send = operation.send;
  const Blocks& recv = operation.recv;
  if (const int code = restore_in_place(operation, comm); code != MPI_SUCCESS) return code;
  const void* send_buffer = operation.in_place ? MPI_IN_PLACE : reinterpret_cast<const void*>(send.buffer());
  return native.Ialltoallv(send_buffer, send.counts(), send.displs(), send.type(),
                           reinterpret_cast<void*>(recv.buffer()), recv.counts(), recv.displs(), recv.type(), comm,
                           request);
}

constexpr Collective kIalltoallv = {policy::Collective::ialltoallv, &post, &reissue};

bool valid_counts(const int* counts, const int* displs, int peers) {
  if (counts == nullptr || displs == nullptr) return false;
  for (int peer = 0; peer < peers; ++peer) {
    if (counts[peer] < 0) return false;
  }
  return true;
}

bool any_count(const int* counts, int peers) {
  for (int peer = 0; peer < peers; ++peer) {
    if (counts[peer] > 0) return true;
  }
  return false;
}

}  // namespace

int handlers::Ialltoallv(const void* send_buffer, const int send_counts[], const int send_displs[],
                         MPI_Datatype send_type, void* recv_buffer, const int recv_counts[], const int recv_displs[],
                         MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  const auto issue = [&](MPI_Comm where) {
    return native.Ialltoallv(send_buffer, send_counts, send_displs, send_type, recv_buffer, recv_counts, recv_displs,
                             recv_type, where, request);
  };
  Team* team = team_of(comm);
  if (team == nullptr) return issue(comm);
  if (!wants_offload(*team, kIalltoallv, 0)) return issue(comm);
  const int peers = team->size();
  const bool in_place = send_buffer == MPI_IN_PLACE;
  // Erroneous arguments: the native library says what is wrong.
  if (request == nullptr || recv_buffer == MPI_IN_PLACE || recv_type == MPI_DATATYPE_NULL ||
      !valid_counts(recv_counts, recv_displs, peers) ||
      (!in_place && (send_type == MPI_DATATYPE_NULL || !valid_counts(send_counts, send_displs, peers)))) {
    return issue(comm);
  }
  Layout send_layout;
  Layout recv_layout;
  if (const int code = describe(recv_type, comm, &recv_layout); code != MPI_SUCCESS) return code;
  if (!in_place) {
    if (const int code = describe(send_type, comm, &send_layout); code != MPI_SUCCESS) return code;
  }
  const bool receives = recv_layout.size_bytes > 0 && any_count(recv_counts, peers);
  const bool sends = !in_place && send_layout.size_bytes > 0 && any_count(send_counts, peers);
  if ((receives && recv_buffer == nullptr && recv_layout.builtin) ||
      (sends && send_buffer == nullptr && send_layout.builtin)) {
    return issue(comm);
  }

  const auto set = [&](Operation& operation) {
    const auto recv_address = reinterpret_cast<uintptr_t>(recv_buffer);
    const auto send_address = reinterpret_cast<uintptr_t>(send_buffer);
    operation.in_place = in_place;
    operation.recv.set_irregular(recv_address, recv_counts, recv_displs, recv_type, recv_layout, peers);
    if (in_place)
      operation.send.set_irregular(recv_address, recv_counts, recv_displs, recv_type, recv_layout, peers);
    else
      operation.send.set_irregular(send_address, send_counts, send_displs, send_type, send_layout, peers);
  };
  return submit_collective(*team, comm, kIalltoallv, request, set, issue);
}

}  // namespace offpath::mpi
