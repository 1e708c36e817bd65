// SPDX-License-Identifier: BSD-3-Clause
#include "collectives/collective.hpp"
#include "handlers.hpp"

namespace offpath::mpi {
namespace {

offpath_status_t post(Operation& operation, offpath_team_t* team) {
  return offpath_alltoall(team, operation.send.service_base(), operation.recv.service_base(),
                          static_cast<uint64_t>(operation.recv.block_bytes(0)), &operation.op);
}

int reissue(Operation& operation, MPI_Comm comm, MPI_Request* request) {
  const Blocks& send = operation.send;
  const Blocks& recv = operation.recv;
  if (const int code = restore_in_place(operation, comm); code != MPI_SUCCESS) return code;
  const void* send_buffer = operation.in_place ? MPI_IN_PLACE : reinterpret_cast<const void*>(send.buffer());
  return native.Ialltoall(send_buffer, send.count(), send.type(), reinterpret_cast<void*>(recv.buffer()), recv.count(),
                          recv.type(), comm, request);
}

constexpr Collective kIalltoall = {policy::Collective::ialltoall, &post, &reissue};

}  // namespace

int handlers::Ialltoall(const void* send_buffer, int send_count, MPI_Datatype send_type, void* recv_buffer,
                        int recv_count, MPI_Datatype recv_type, MPI_Comm comm, MPI_Request* request) {
  const auto issue = [&](MPI_Comm where) {
    return native.Ialltoall(send_buffer, send_count, send_type, recv_buffer, recv_count, recv_type, where, request);
  };
  Team* team = team_of(comm);
  if (team == nullptr) return issue(comm);
  const bool in_place = send_buffer == MPI_IN_PLACE;
  // Erroneous arguments: the native library says what is wrong.
  if (recv_count < 0 || (!in_place && send_count < 0) || request == nullptr || recv_buffer == MPI_IN_PLACE ||
      recv_type == MPI_DATATYPE_NULL || (!in_place && send_type == MPI_DATATYPE_NULL)) {
    return issue(comm);
  }
  Layout send_layout;
  Layout recv_layout;
  if (const int code = describe(recv_type, comm, &recv_layout); code != MPI_SUCCESS) return code;
  if (!in_place) {
    if (const int code = describe(send_type, comm, &send_layout); code != MPI_SUCCESS) return code;
  }
  const int64_t bytes_per_peer = recv_count * recv_layout.size_bytes;
  const bool no_buffer = bytes_per_peer > 0 && ((recv_buffer == nullptr && recv_layout.builtin) ||
                                                (!in_place && send_buffer == nullptr && send_layout.builtin));
  const bool aliased = bytes_per_peer > 0 && send_buffer == recv_buffer && recv_buffer != MPI_BOTTOM;
  const bool uneven = !in_place && send_count * send_layout.size_bytes != bytes_per_peer;
  if (no_buffer || aliased || uneven) return issue(comm);
  if (!wants_offload(*team, kIalltoall, static_cast<uint64_t>(bytes_per_peer))) return issue(comm);

  const auto set = [&](Operation& operation) {
    const auto recv_address = reinterpret_cast<uintptr_t>(recv_buffer);
    const auto send_address = reinterpret_cast<uintptr_t>(send_buffer);
    operation.in_place = in_place;
    operation.recv.set_uniform(recv_address, recv_count, recv_type, recv_layout, team->size());
    if (in_place)
      operation.send.set_uniform(recv_address, recv_count, recv_type, recv_layout, team->size());
    else
      operation.send.set_uniform(send_address, send_count, send_type, send_layout, team->size());
  };
  return submit_collective(*team, comm, kIalltoall, request, set, issue);
}

}  // namespace offpath::mpi
