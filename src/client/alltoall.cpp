// SPDX-License-Identifier: BSD-3-Clause
// Two forms of an exchange. Empty blocks are left out. In place the data to send is staged when posting.
#include "base/result.hpp"
#include "client/collective.hpp"
#include "base/limits.hpp"

#include <cstring>
#include <new>
#include <vector>

using offpath::base::ErrnoGuard;

namespace {

constexpr const char* kAlltoall = "alltoall";
constexpr const char* kAlltoallv = "alltoallv";

using offpath::base::kBlockLimitBytes;
using Blocks = std::vector<offpath_block_t>;

void add_block(Blocks& blocks, uint32_t peer, const void* buffer, int64_t displ_bytes, uint64_t bytes) {
  if (bytes == 0) return;
  // An integer sum: the buffer may be null and the displacement an address.
  const uint64_t address = reinterpret_cast<uint64_t>(buffer) + static_cast<uint64_t>(displ_bytes);
  blocks.push_back({peer, 0, reinterpret_cast<const void*>(address), bytes, 0});
}

offpath_status_t post_exchange(offpath_team& team, const char* name, const Blocks& send, const Blocks& recv,
                               std::unique_ptr<uint8_t[]> staging, offpath_op** out) {
  offpath_collective_t exchange{};
  exchange.struct_bytes = sizeof(exchange);
  exchange.kind = OFFPATH_EXCHANGE;
  exchange.send = send.data();
  exchange.send_count = static_cast<uint32_t>(send.size());
  exchange.recv = recv.data();
  exchange.recv_count = static_cast<uint32_t>(recv.size());
  return offpath::client::post_collective(team, exchange, name, std::move(staging), out);
}

// What lies in the receive blocks goes back to where it will come from.
offpath_status_t post_in_place(offpath_team& team, const char* name, Blocks recv, offpath_op** out) {
  // The own block lies where it belongs already.
  std::erase_if(recv, [&](const offpath_block_t& block) { return block.peer == team.rank; });
  uint64_t total = 0;
  for (const offpath_block_t& block : recv) {
    if (block.address == nullptr || block.bytes >= kBlockLimitBytes) return OFFPATH_ERR_ARGUMENT;
    if ((total += block.bytes) >= kBlockLimitBytes) return OFFPATH_ERR_NO_MEMORY;
  }
  std::unique_ptr<uint8_t[]> staging(new (std::nothrow) uint8_t[total]);
  if (staging == nullptr) return OFFPATH_ERR_NO_MEMORY;
  Blocks send = recv;
  uint8_t* at = staging.get();
  for (offpath_block_t& block : send) {
    memcpy(at, block.address, block.bytes);
    block.address = at;
    at += block.bytes;
  }
  return post_exchange(team, name, send, recv, std::move(staging), out);
}

}  // namespace

extern "C" {

offpath_status_t offpath_alltoall(offpath_team_t* team, const void* send, void* recv, uint64_t bytes_per_peer,
                                  offpath_op_t** out) {
  if (team == nullptr || out == nullptr || (bytes_per_peer > 0 && (recv == nullptr || send == nullptr))) {
    return OFFPATH_ERR_ARGUMENT;
  }
  ErrnoGuard guard;
  *out = nullptr;
  if (!team->session->mine()) return OFFPATH_ERR_STATE;
  if (bytes_per_peer >= kBlockLimitBytes) return OFFPATH_ERR_ARGUMENT;  // also: the sums below do not wrap
  const auto blocks_of = [&](const void* buffer) {
    Blocks blocks;
    blocks.reserve(team->size);
    for (uint32_t peer = 0; peer < team->size; ++peer) {
      add_block(blocks, peer, buffer, static_cast<int64_t>(peer * bytes_per_peer), bytes_per_peer);
    }
    return blocks;
  };
  if (send == OFFPATH_IN_PLACE) return post_in_place(*team, kAlltoall, blocks_of(recv), out);
  return post_exchange(*team, kAlltoall, blocks_of(send), blocks_of(recv), nullptr, out);
}

offpath_status_t offpath_alltoallv(offpath_team_t* team, const void* send, const uint64_t* send_bytes,
                                   const int64_t* send_displs_bytes, void* recv, const uint64_t* recv_bytes,
                                   const int64_t* recv_displs_bytes, offpath_op_t** out) {
  const bool in_place = send == OFFPATH_IN_PLACE;
  if (team == nullptr || out == nullptr || recv_bytes == nullptr || recv_displs_bytes == nullptr ||
      (!in_place && (send_bytes == nullptr || send_displs_bytes == nullptr))) {
    return OFFPATH_ERR_ARGUMENT;
  }
  ErrnoGuard guard;
  *out = nullptr;
  if (!team->session->mine()) return OFFPATH_ERR_STATE;
  const auto blocks_of = [&](const void* buffer, const uint64_t* bytes, const int64_t* displs_bytes) {
    Blocks blocks;
    blocks.reserve(team->size);
    for (uint32_t peer = 0; peer < team->size; ++peer) {
      add_block(blocks, peer, buffer, displs_bytes[peer], bytes[peer]);
    }
    return blocks;
  };
  Blocks to_receive = blocks_of(recv, recv_bytes, recv_displs_bytes);
  if (in_place) return post_in_place(*team, kAlltoallv, std::move(to_receive), out);
  return post_exchange(*team, kAlltoallv, blocks_of(send, send_bytes, send_displs_bytes), to_receive, nullptr, out);
}

}  // extern "C"
