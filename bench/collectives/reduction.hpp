// SPDX-License-Identifier: BSD-3-Clause
// Collectives that sum vectors of doubles. The values are whole numbers, so every order of summation gives the same.
#pragma once

#include "operation.hpp"

#include <cstdint>

namespace bench {

class Reduction : public Operation {
 public:
  enum class Kind { reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, exscan };

  Reduction(Kind kind, std::int64_t bytes, MPI_Comm communicator);

  void start(MPI_Request* request) override;
  void prepare(int round) override;
  bool verify(int round) const override;

 private:
  bool scatters() const { return kind_ == Kind::reduce_scatter || kind_ == Kind::reduce_scatter_block; }
  // Ranks [0, contributors) are summed up here; none: the receive vector stays as it is.
  int contributors() const;

  Kind kind_;
  MPI_Comm communicator_;
  int rank_ = 0, ranks_ = 1;
  std::vector<int> counts_;  // reduce_scatter
  std::vector<double> send_, receive_;
};

}  // namespace bench
