// SPDX-License-Identifier: BSD-3-Clause
#include "movement.hpp"

#include <algorithm>

#include "../codecs/fields.hpp"

namespace bench {
namespace {

constexpr std::size_t kFieldBytes = 4 << 20;

}  // namespace

void Movement::Side::add(int peer, std::int64_t count) {
  peers.push_back(peer);
  displs.push_back(int(bytes.size()));
  counts.push_back(int(count));
  bytes.resize(bytes.size() + std::size_t(count));
}

Movement::Movement(Kind kind, std::int64_t bytes, const std::string& field, MPI_Comm communicator)
    : kind_(kind), communicator_(communicator) {
  if (!field.empty()) field_ = fields::make(field, kFieldBytes);
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  block_ = kind == Kind::bcast ? bytes : std::max<std::int64_t>(1, bytes / ranks_);
  const bool is_root = rank_ == kRoot, from_root = kind == Kind::bcast || kind == Kind::scatter;
  const bool to_root = kind == Kind::gather;
  const bool one_block = kind == Kind::bcast || kind == Kind::allgather || kind == Kind::allgatherv || to_root;
  if (!from_root || is_root) {
    for (int peer = 0; peer < (one_block ? 1 : ranks_); ++peer) send_.add(peer, count(rank_, peer));
  }
  if (from_root) {
    if (kind == Kind::scatter || !is_root) receive_.add(kRoot, count(kRoot, rank_));
  } else if (!to_root || is_root) {
    for (int peer = 0; peer < ranks_; ++peer) receive_.add(peer, count(peer, rank_));
  }
  prepare(0);
}

std::int64_t Movement::count(int from, int to) const {
  const std::int64_t eighth = block_ / 8;  // -1, 0, +1 eighth: the average stays the size
  if (kind_ == Kind::alltoallv) return block_ + ((from + to) % 3 - 1) * eighth;
  if (kind_ == Kind::allgatherv) return block_ + (from % 3 - 1) * eighth;
  return block_;
}

int Movement::addressee(int to) const {
  const bool own_block = kind_ == Kind::alltoall || kind_ == Kind::alltoallv || kind_ == Kind::scatter;
  return own_block ? to : 0;
}

std::uint8_t Movement::byte(int from, int to, int round, std::int64_t at) const {
  if (field_.empty()) return content(from, to, round, at);
  const auto begin = std::size_t(8 * (4099 * from + 1031 * to + 257 * round));
  return field_[(begin + std::size_t(at)) % field_.size()];
}

void Movement::start(MPI_Request* request) {
  void *const from = send_.bytes.data(), *const to = receive_.bytes.data();
  const int block = int(block_);
  switch (kind_) {
    case Kind::alltoall:
      MPI_Ialltoall(from, block, MPI_BYTE, to, block, MPI_BYTE, communicator_, request);
      return;
    case Kind::alltoallv:
      MPI_Ialltoallv(from, send_.counts.data(), send_.displs.data(), MPI_BYTE, to, receive_.counts.data(),
                     receive_.displs.data(), MPI_BYTE, communicator_, request);
      return;
    case Kind::allgather:
      MPI_Iallgather(from, block, MPI_BYTE, to, block, MPI_BYTE, communicator_, request);
      return;
    case Kind::allgatherv:
      MPI_Iallgatherv(from, send_.counts[0], MPI_BYTE, to, receive_.counts.data(), receive_.displs.data(), MPI_BYTE,
                      communicator_, request);
      return;
    case Kind::gather:
      MPI_Igather(from, block, MPI_BYTE, to, block, MPI_BYTE, kRoot, communicator_, request);
      return;
    case Kind::scatter:
      MPI_Iscatter(from, block, MPI_BYTE, to, block, MPI_BYTE, kRoot, communicator_, request);
      return;
    case Kind::bcast:
      MPI_Ibcast(rank_ == kRoot ? from : to, block, MPI_BYTE, kRoot, communicator_, request);
      return;
  }
}

void Movement::prepare(int round) {
  for (std::size_t block = 0; block < send_.peers.size(); ++block)
    for (int i = 0; i < send_.counts[block]; ++i)
      send_.bytes[send_.displs[block] + i] = byte(rank_, addressee(send_.peers[block]), round, i);
  for (std::uint8_t& byte : receive_.bytes) byte = std::uint8_t(~byte);
}

bool Movement::verify(int round) const {
  for (std::size_t block = 0; block < receive_.peers.size(); ++block)
    for (int i = 0; i < receive_.counts[block]; ++i)
      if (receive_.bytes[receive_.displs[block] + i] != byte(receive_.peers[block], addressee(rank_), round, i))
        return false;
  return true;
}

}  // namespace bench
