// SPDX-License-Identifier: BSD-3-Clause
// The graph most tests of the engine run: every member sends every member a block.
#pragma once

#include "graph/graph.hpp"

#include <vector>

namespace offpath::testing {

struct Alltoallv {
  uint32_t rank;
  uint64_t send, recv;  // addresses
  std::vector<uint64_t> send_bytes, recv_bytes;
  std::vector<int64_t> send_displs, recv_displs;
};

inline graph::Graph alltoallv_graph(const Alltoallv& a) {
  graph::Graph graph;
  const auto size = static_cast<uint32_t>(a.send_bytes.size());
  for (uint32_t i = 1; i <= size; ++i) {
    const uint32_t peer = (a.rank + i) % size;
    const auto from = graph::client_place(a.send + static_cast<uint64_t>(a.send_displs[peer]));
    const auto to = graph::client_place(a.recv + static_cast<uint64_t>(a.recv_displs[peer]));
    if (peer == a.rank) {
      graph.copy(from, to, a.send_bytes[peer]);
      continue;
    }
    if (a.recv_bytes[peer] > 0) graph.pull(peer, 0, to, a.recv_bytes[peer]);
    if (a.send_bytes[peer] > 0) graph.offer(peer, 0, from, a.send_bytes[peer]);
  }
  return graph;
}

inline graph::Graph alltoall_graph(uint32_t rank, uint32_t size, uint64_t send, uint64_t recv, uint64_t bytes) {
  std::vector<int64_t> displs(size);
  for (uint32_t i = 0; i < size; ++i) displs[i] = static_cast<int64_t>(i * bytes);
  const std::vector<uint64_t> counts(size, bytes);
  return alltoallv_graph({rank, send, recv, counts, counts, displs, displs});
}

}  // namespace offpath::testing
