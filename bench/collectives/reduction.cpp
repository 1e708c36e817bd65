// SPDX-License-Identifier: BSD-3-Clause
#include "reduction.hpp"

#include <algorithm>

namespace bench {
namespace {

constexpr double kSpoilt = -1;

double content(int rank, int round, std::int64_t at) { return double((31 * rank + 7 * round + at) % 1021); }

}  // namespace

Reduction::Reduction(Kind kind, std::int64_t bytes, MPI_Comm communicator) : kind_(kind), communicator_(communicator) {
  MPI_Comm_rank(communicator, &rank_);
  MPI_Comm_size(communicator, &ranks_);
  const std::int64_t elements = bytes / std::int64_t(sizeof(double));
  const std::int64_t part = std::max<std::int64_t>(1, scatters() ? elements / ranks_ : elements);
  counts_.assign(ranks_, int(part));
  send_.resize(scatters() ? part * ranks_ : part);
  receive_.resize(part);
  prepare(0);
}

void Reduction::start(MPI_Request* request) {
  const double* from = send_.data();
  double* to = receive_.data();
  const int count = int(receive_.size());
  switch (kind_) {
    case Kind::reduce:
      MPI_Ireduce(from, to, count, MPI_DOUBLE, MPI_SUM, kRoot, communicator_, request);
      return;
    case Kind::allreduce:
      MPI_Iallreduce(from, to, count, MPI_DOUBLE, MPI_SUM, communicator_, request);
      return;
    case Kind::reduce_scatter:
      MPI_Ireduce_scatter(from, to, counts_.data(), MPI_DOUBLE, MPI_SUM, communicator_, request);
      return;
    case Kind::reduce_scatter_block:
      MPI_Ireduce_scatter_block(from, to, count, MPI_DOUBLE, MPI_SUM, communicator_, request);
      return;
    case Kind::scan:
      MPI_Iscan(from, to, count, MPI_DOUBLE, MPI_SUM, communicator_, request);
      return;
    case Kind::exscan:
      MPI_Iexscan(from, to, count, MPI_DOUBLE, MPI_SUM, communicator_, request);
      return;
  }
}

int Reduction::contributors() const {
  if (kind_ == Kind::reduce) return rank_ == kRoot ? ranks_ : 0;
  if (kind_ == Kind::scan) return rank_ + 1;
  if (kind_ == Kind::exscan) return rank_;
  return ranks_;
}

void Reduction::prepare(int round) {
  for (std::size_t i = 0; i < send_.size(); ++i) send_[i] = content(rank_, round, std::int64_t(i));
  std::fill(receive_.begin(), receive_.end(), kSpoilt);
}

bool Reduction::verify(int round) const {
  const std::size_t offset = scatters() ? rank_ * receive_.size() : 0;
  const int last = contributors();
  for (std::size_t i = 0; i < receive_.size(); ++i) {
    double sum = last == 0 ? kSpoilt : 0;
    for (int rank = 0; rank < last; ++rank) sum += content(rank, round, std::int64_t(offset + i));
    if (receive_[i] != sum) return false;
  }
  return true;
}

}  // namespace bench
