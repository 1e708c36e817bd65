// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/posted_call.hpp"

#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/tags.hpp"

namespace offpath::mpi {

int PostedCall::raise(int code) const { return lane->raise(code); }

int PostedCall::prepare(MPI_Comm comm) {
  natives.reserve(call->pairwise ? call->send.blocks() + call->recv.blocks() : 1);
  if (call->send.staged() && !send_staging.take(call->send.staging_bytes())) return MPI_ERR_NO_MEM;
  if (call->recv.staged() && !recv_staging.take(call->recv.staging_bytes())) return MPI_ERR_NO_MEM;
  return call->send.pack_into(send_staging.get(), comm);
}

offpath_status_t PostedCall::post(offpath_team_t* handle) {
  std::vector<offpath_block_t> send, recv;
  std::vector<offpath_layout_t> layouts;
  call->send.describe(send_staging.get(), &send, &layouts);
  call->recv.describe(recv_staging.get(), &recv, &layouts);
  offpath_collective_t wanted{};
  wanted.struct_bytes = sizeof(wanted);
  wanted.kind = policy::kind_of(call->collective->id);
  wanted.algorithm = algorithm;
  wanted.root = static_cast<uint32_t>(call->arguments.root);
  wanted.op = call->op;
  wanted.element = call->op == OFFPATH_OP_NONE ? call->send.made_of() : call->element;
  wanted.send = send.data();
  wanted.send_count = static_cast<uint32_t>(send.size());
  wanted.recv = recv.data();
  wanted.recv_count = static_cast<uint32_t>(recv.size());
  wanted.counts_bytes = call->counts_bytes.data();
  wanted.layouts = layouts.data();
  wanted.layouts_count = static_cast<uint32_t>(layouts.size());
  wanted.ends = call->pairwise ? OFFPATH_ENDS_BY_PAIRS : OFFPATH_ENDS_TOGETHER;
  return offpath_collective(handle, &wanted, &op);
}

int PostedCall::deliver(MPI_Comm comm) { return call->recv.unpack_from(recv_staging.get(), comm); }

void PostedCall::exchange(Share share, MPI_Comm comm, const Chosen& peers) {
  const int tag = block_tag(sequence, share);
  call->recv.receive(share, peers, tag, comm, &natives);
  call->send.send(share, peers, send_staging.get(), tag, comm, &natives);
}

int PostedCall::reissue(MPI_Comm comm) {
  if (call->in_place) {
    const int code = call->send.unpack_from(send_staging.get(), comm);
    if (code != MPI_SUCCESS) return code;
  }
  issue(comm);
  return MPI_SUCCESS;
}

void PostedCall::issue(MPI_Comm comm) {
  natives.start([&](MPI_Request* made) { return call->collective->issue(call->arguments, comm, made); });
}

void PostedCall::abandon_staging() {
  send_staging.abandon();
  recv_staging.abandon();
}

void PostedCall::release() {
  send_staging.give_back();
  recv_staging.give_back();
  call.reset();
}

}  // namespace offpath::mpi
