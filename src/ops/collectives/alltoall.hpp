// SPDX-License-Identifier: BSD-3-Clause
// Alltoall and alltoallv by the pull protocol: one pull per peer in the order rank+1, rank+2, ..., so that not all
// members ask the same one first; the own block is a copy. Source: pairwise exchange as in Thakur, Rabenseifner,
// Gropp (IJHPCA 2005), with the receiver asking.
#pragma once

#include "engine/graph.hpp"

#include <cstdint>
#include <span>

namespace offpath::ops {

struct AlltoallArguments {
  uint32_t rank;
  uint32_t size;
  uint64_t send;  // client addresses, size blocks each
  uint64_t recv;
  uint64_t block_bytes;
  bool copy_own_block;
};

engine::Graph expand_alltoall(const AlltoallArguments& arguments);

struct AlltoallvArguments {
  uint32_t rank;
  uint64_t send;
  uint64_t recv;
  std::span<const uint64_t> send_bytes, recv_bytes;   // size entries each
  std::span<const int64_t> send_displs, recv_displs;  // in bytes
  bool copy_own_block;
};

engine::Graph expand_alltoallv(const AlltoallvArguments& arguments);

}  // namespace offpath::ops
