#include "exchange.hpp"

#include <algorithm>

namespace bench {
namespace {

// Differs by sender, receiver, round and place; cheap enough for gigabytes.
std::uint8_t content(int from, int to, int round, std::int64_t at) {
  return std::uint8_t(31 * from + 17 * to + 7 * round + at + (at >> 8) + (at >> 16));
}

}  // namespace

Exchange::Exchange(std::int64_t bytes_per_peer, bool vector_counts, MPI_Comm communicator)
    : bytes_(bytes_per_peer), vector_counts_(vector_counts), communicator_(communicator) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  std::int64_t sent = 0, received = 0;
  for (int peer = 0; peer < ranks_; ++peer) {
    send_counts_.push_back(int(count(rank_, peer)));
    send_displs_.push_back(int(sent));
    receive_counts_.push_back(int(count(peer, rank_)));
    receive_displs_.push_back(int(received));
    sent += send_counts_.back();
    received += receive_counts_.back();
  }
  send_.resize(sent);
  receive_.resize(received);
  prepare(0);
}

std::int64_t Exchange::count(int from, int to) const {
  if (!vector_counts_) return bytes_;
  const std::int64_t eighth = bytes_ / 8;  // -1, 0, +1 eighth: the average stays the size
  return bytes_ + ((from + to) % 3 - 1) * eighth;
}

void Exchange::start(MPI_Request* request) {
  if (vector_counts_) {
    MPI_Ialltoallv(send_.data(), send_counts_.data(), send_displs_.data(), MPI_BYTE, receive_.data(),
                   receive_counts_.data(), receive_displs_.data(), MPI_BYTE, communicator_, request);
  } else {
    MPI_Ialltoall(send_.data(), int(bytes_), MPI_BYTE, receive_.data(), int(bytes_), MPI_BYTE, communicator_, request);
  }
}

void Exchange::prepare(int round) {
  for (int peer = 0; peer < ranks_; ++peer)
    for (std::int64_t i = 0; i < send_counts_[peer]; ++i)
      send_[send_displs_[peer] + i] = content(rank_, peer, round, i);
  std::transform(receive_.begin(), receive_.end(), receive_.begin(), [](std::uint8_t byte) { return ~byte; });
}

bool Exchange::verify(int round) const {
  for (int peer = 0; peer < ranks_; ++peer)
    for (std::int64_t i = 0; i < receive_counts_[peer]; ++i)
      if (receive_[receive_displs_[peer] + i] != content(peer, rank_, round, i)) return false;
  return true;
}

}  // namespace bench
