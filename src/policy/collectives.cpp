// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <initializer_list>
#include <iterator>

namespace offpath::policy {
namespace {

// In the order of offpath_algorithm_t.
constexpr const char* kAlgorithmNames[] = {
    "default",           "direct",   "ring",         "chain",    "binomial",
    "scatter_allgather", "doubling", "rabenseifner", "pairwise", "dissemination"};
static_assert(std::size(kAlgorithmNames) == kAlgorithmsCount);

constexpr uint32_t set_of(std::initializer_list<offpath_algorithm_t> algorithms) {
  uint32_t set = 1u << OFFPATH_ALGORITHM_DEFAULT;
  for (const offpath_algorithm_t algorithm : algorithms) set |= 1u << algorithm;
  return set;
}

constexpr uint32_t kExchange = set_of({OFFPATH_ALGORITHM_DIRECT});
constexpr uint32_t kAllgather = set_of({OFFPATH_ALGORITHM_DIRECT, OFFPATH_ALGORITHM_RING});
constexpr uint32_t kScan = set_of({OFFPATH_ALGORITHM_CHAIN, OFFPATH_ALGORITHM_DOUBLING});
constexpr uint32_t kBcast =
    set_of({OFFPATH_ALGORITHM_CHAIN, OFFPATH_ALGORITHM_BINOMIAL, OFFPATH_ALGORITHM_SCATTER_ALLGATHER});
constexpr uint32_t kReduce = set_of({OFFPATH_ALGORITHM_BINOMIAL, OFFPATH_ALGORITHM_RABENSEIFNER});
constexpr uint32_t kAllreduce =
    set_of({OFFPATH_ALGORITHM_RING, OFFPATH_ALGORITHM_DOUBLING, OFFPATH_ALGORITHM_RABENSEIFNER});
constexpr uint32_t kReduceScatter = set_of({OFFPATH_ALGORITHM_PAIRWISE});
constexpr uint32_t kBarrier = set_of({OFFPATH_ALGORITHM_DISSEMINATION});

struct CollectiveInfo {
  const char* name;
  uint32_t algorithms;
  bool irregular = false;
};
// In the order of Collective.
constexpr CollectiveInfo kCollectives[] = {
    {"ibarrier", kBarrier},
    {"ibcast", kBcast},
    {"igather", kExchange},
    {"igatherv", kExchange, true},
    {"iscatter", kExchange},
    {"iscatterv", kExchange, true},
    {"iallgather", kAllgather},
    {"iallgatherv", kAllgather},
    {"ialltoall", kExchange},
    {"ialltoallv", kExchange, true},
    {"ialltoallw", kExchange, true},
    {"ireduce", kReduce},
    {"iallreduce", kAllreduce},
    {"ireduce_scatter", kReduceScatter},
    {"ireduce_scatter_block", kReduceScatter},
    {"iscan", kScan},
    {"iexscan", kScan},
    {"ineighbor_allgather", kExchange, true},
    {"ineighbor_allgatherv", kExchange, true},
    {"ineighbor_alltoall", kExchange, true},
    {"ineighbor_alltoallv", kExchange, true},
    {"ineighbor_alltoallw", kExchange, true},
    {"window", set_of({}), true},
};
static_assert(std::size(kCollectives) == kCollectivesCount);

const CollectiveInfo& info(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

}  // namespace

const char* collective_name(Collective collective) { return info(collective).name; }
const char* algorithm_name(offpath_algorithm_t algorithm) { return kAlgorithmNames[algorithm]; }
bool is_irregular(Collective collective) { return info(collective).irregular; }
bool has_size(Collective collective) { return collective != Collective::window; }
bool knows(Collective collective, offpath_algorithm_t algorithm) {
  return (info(collective).algorithms & 1u << algorithm) != 0;
}

}  // namespace offpath::policy
