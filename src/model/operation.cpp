// SPDX-License-Identifier: BSD-3-Clause
#include "model/operation.hpp"

#include <algorithm>

namespace offpath::model {
namespace {

using base::Status;
using policy::Collective;

// Any addresses that do not meet: the model looks at lengths only.
constexpr uint64_t kSendBase = uint64_t{1} << 44, kRecvBase = uint64_t{2} << 44;

constexpr uint64_t kElementBytes = 8;
uint64_t whole_elements(uint64_t bytes) { return (bytes + kElementBytes - 1) / kElementBytes * kElementBytes; }

// Part `index` of a vector that is dealt out evenly.
uint64_t share(uint64_t bytes, uint32_t index, uint32_t size) {
  const uint64_t elements = whole_elements(bytes) / kElementBytes;
  return (elements / size + (index < elements % size ? 1 : 0)) * kElementBytes;
}

uint64_t contributed_bytes(const Operation& operation, uint32_t member, uint32_t size) {
  if (!operation.sent_bytes.empty()) {
    const auto& sent = operation.sent_bytes[member];
    return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
  }
  return share(operation.bytes, member, size);
}

}  // namespace

bool is_exchange(Collective kind) { return policy::kind_of(kind) == OFFPATH_EXCHANGE; }

Status set_kind(Operation& operation, const std::string& name) {
  operation.remote = name == "get" || name == "fetch"        ? Remote::get
                     : name == "put" || name == "accumulate" ? Remote::put
                                                             : Remote::none;
  operation.reduces = name == "accumulate";
  operation.kind = Collective::send;
  if (name == policy::collective_name(Collective::send)) operation.remote = Remote::message;
  if (operation.remote != Remote::none) return {};
  for (size_t i = 0; i < policy::kCollectivesCount; ++i) {
    operation.kind = static_cast<Collective>(i);
    if (name == policy::collective_name(operation.kind) && policy::is_collective(operation.kind)) return {};
  }
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "'%s' is no operation that the model knows. Give a name that the policy has", name.c_str());
}

uint64_t exchanged_bytes(const Operation& operation, uint32_t from, uint32_t to, uint32_t size) {
  if (!operation.sent_bytes.empty()) return operation.sent_bytes[from][to];
  switch (operation.kind) {
    case Collective::igather:
    case Collective::igatherv:
      return to == operation.root ? operation.bytes / size : 0;
    case Collective::iscatter:
    case Collective::iscatterv:
      return from == operation.root ? operation.bytes / size : 0;
    default:
      return operation.bytes / size;
  }
}

uint64_t own_bytes(const Operation& operation, uint32_t member) {
  const auto kind = policy::kind_of(operation.kind);
  if (operation.remote != Remote::none || (kind != OFFPATH_EXCHANGE && kind != OFFPATH_ALLGATHER)) return 0;
  return exchanged_bytes(operation, member, member, static_cast<uint32_t>(operation.members.size()));
}

base::Result<graph::Graph> service_graph(const Operation& operation, const ops::Topology& topology, bool copy_own) {
  const uint32_t rank = topology.rank, size = topology.size();
  ops::Collective collective;
  collective.kind = policy::kind_of(operation.kind);
  collective.algorithm = operation.algorithm;
  collective.root = operation.root;
  if (!copy_own) collective.own_blocks = collective::OwnBlocks::by_client;
  const uint64_t vector = whole_elements(operation.bytes);
  const ops::Block send{0, 0, kSendBase, vector};
  const ops::Block recv{0, 0, kRecvBase, vector};
  if (collective.kind >= OFFPATH_REDUCE) collective.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64};
  switch (collective.kind) {
    case OFFPATH_EXCHANGE: {
      uint64_t sent = 0, received = 0;
      for (uint32_t peer = 0; peer < size; ++peer) {
        const uint64_t out = exchanged_bytes(operation, rank, peer, size);
        const uint64_t in = exchanged_bytes(operation, peer, rank, size);
        collective.send.push_back({peer, 0, kSendBase + sent, out});
        collective.recv.push_back({peer, 0, kRecvBase + received, in});
        sent += out;
        received += in;
      }
      break;
    }
    case OFFPATH_BARRIER:
      break;
    case OFFPATH_BCAST:
      (rank == operation.root ? collective.send : collective.recv) = {send};
      break;
    case OFFPATH_ALLGATHER: {
      uint64_t offset = 0;
      for (uint32_t peer = 0; peer < size; ++peer) {
        const uint64_t bytes = contributed_bytes(operation, peer, size);
        collective.recv.push_back({0, 0, kRecvBase + offset, bytes});
        offset += bytes;
      }
      collective.send = {{0, 0, kSendBase, collective.recv[rank].bytes}};
      break;
    }
    case OFFPATH_REDUCE:
      collective.send = {send};
      if (rank == operation.root) collective.recv = {recv};
      break;
    case OFFPATH_REDUCE_SCATTER:
      for (uint32_t peer = 0; peer < size; ++peer) collective.counts_bytes.push_back(share(vector, peer, size));
      collective.send = {send};
      collective.recv = {{0, 0, kRecvBase, collective.counts_bytes[rank]}};
      break;
    default:
      collective.send = {send};
      collective.recv = {recv};
  }
  if (const Status status = check(collective, topology.rank, topology.size()); !status.ok()) return status;
  return ops::expand(std::move(collective), topology);
}

}  // namespace offpath::model
