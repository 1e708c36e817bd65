// SPDX-License-Identifier: BSD-3-Clause
// Every algorithm there is.
#pragma once

#include "ops/collectives/collective.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace offpath::testing {

struct Algorithm {
  offpath_collective_kind_t kind;
  offpath_algorithm_t algorithm;
  const char* name;
};

inline constexpr Algorithm kAlgorithms[] = {
    {OFFPATH_EXCHANGE, OFFPATH_ALGORITHM_DIRECT, "exchange_direct"},
    {OFFPATH_BARRIER, OFFPATH_ALGORITHM_DISSEMINATION, "barrier_dissemination"},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_BINOMIAL, "bcast_binomial"},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_CHAIN, "bcast_chain"},
    {OFFPATH_BCAST, OFFPATH_ALGORITHM_SCATTER_ALLGATHER, "bcast_scatter_allgather"},
    {OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_DIRECT, "allgather_direct"},
    {OFFPATH_ALLGATHER, OFFPATH_ALGORITHM_RING, "allgather_ring"},
    {OFFPATH_REDUCE, OFFPATH_ALGORITHM_BINOMIAL, "reduce_binomial"},
    {OFFPATH_REDUCE, OFFPATH_ALGORITHM_RABENSEIFNER, "reduce_rabenseifner"},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_DOUBLING, "allreduce_doubling"},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RABENSEIFNER, "allreduce_rabenseifner"},
    {OFFPATH_ALLREDUCE, OFFPATH_ALGORITHM_RING, "allreduce_ring"},
    {OFFPATH_REDUCE_SCATTER, OFFPATH_ALGORITHM_PAIRWISE, "reduce_scatter_pairwise"},
    {OFFPATH_SCAN, OFFPATH_ALGORITHM_CHAIN, "scan_chain"},
    {OFFPATH_SCAN, OFFPATH_ALGORITHM_DOUBLING, "scan_doubling"},
    {OFFPATH_EXSCAN, OFFPATH_ALGORITHM_CHAIN, "exscan_chain"},
    {OFFPATH_EXSCAN, OFFPATH_ALGORITHM_DOUBLING, "exscan_doubling"},
};

inline std::string name_of(const ::testing::TestParamInfo<Algorithm>& info) { return info.param.name; }

inline std::vector<Algorithm> reductions() {
  std::vector<Algorithm> found;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.kind >= OFFPATH_REDUCE) found.push_back(algorithm);
  }
  return found;
}

}  // namespace offpath::testing
