// SPDX-License-Identifier: BSD-3-Clause
#include "ops/collectives/alltoall.hpp"

namespace offpath::ops {
namespace {

struct Block {
  uint64_t address;
  uint64_t bytes;
};

template <typename SendBlock, typename RecvBlock>
engine::Graph expand(uint32_t rank, uint32_t size, bool copy_own_block, SendBlock send_block, RecvBlock recv_block) {
  engine::Graph graph;
  graph.steps.reserve(size);
  graph.exports.reserve(size);
  for (uint32_t i = 1; i < size; ++i) {
    const uint32_t peer = (rank + i) % size;
    const Block to = recv_block(peer);
    if (to.bytes > 0) graph.pull(peer, 0, to.address, to.bytes);
    const Block from = send_block(peer);
    if (from.bytes > 0) graph.offer(peer, 0, from.address, from.bytes);
  }
  const Block own = send_block(rank);
  if (copy_own_block && own.bytes > 0) graph.copy(own.address, recv_block(rank).address, own.bytes);
  return graph;
}

}  // namespace

engine::Graph expand_alltoall(const AlltoallArguments& a) {
  return expand(
      a.rank, a.size, a.copy_own_block,
      [&](uint32_t peer) {
        return Block{a.send + peer * a.block_bytes, a.block_bytes};
      },
      [&](uint32_t peer) {
        return Block{a.recv + peer * a.block_bytes, a.block_bytes};
      });
}

engine::Graph expand_alltoallv(const AlltoallvArguments& a) {
  return expand(
      a.rank, static_cast<uint32_t>(a.send_bytes.size()), a.copy_own_block,
      [&](uint32_t peer) {
        return Block{a.send + static_cast<uint64_t>(a.send_displs[peer]), a.send_bytes[peer]};
      },
      [&](uint32_t peer) {
        return Block{a.recv + static_cast<uint64_t>(a.recv_displs[peer]), a.recv_bytes[peer]};
      });
}

}  // namespace offpath::ops
