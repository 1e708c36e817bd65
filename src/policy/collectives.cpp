// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <iterator>

namespace offpath::policy {
namespace {

constexpr int kNoKind = -1;

constexpr uint32_t algorithms_of(int kind) {
  uint32_t set = 1u << OFFPATH_ALGORITHM_DEFAULT;
#define OFFPATH_EXPANSION(row_kind, NAME, from, function) \
  if (kind == OFFPATH_##row_kind) set |= 1u << OFFPATH_ALGORITHM_##NAME;
#include <offpath/words/algorithms.def>
  return set;
}

struct CollectiveInfo {
  const char* name;
  int kind;  // offpath_collective_kind_t
  bool irregular = false;
  uint32_t algorithms = algorithms_of(kind);
};
// In the order of Collective.
constexpr CollectiveInfo kCollectives[] = {
    {"ibarrier", OFFPATH_BARRIER},
    {"ibcast", OFFPATH_BCAST},
    {"igather", OFFPATH_EXCHANGE},
    {"igatherv", OFFPATH_EXCHANGE, true},
    {"iscatter", OFFPATH_EXCHANGE},
    {"iscatterv", OFFPATH_EXCHANGE, true},
    {"iallgather", OFFPATH_ALLGATHER},
    {"iallgatherv", OFFPATH_ALLGATHER},
    {"ialltoall", OFFPATH_EXCHANGE},
    {"ialltoallv", OFFPATH_EXCHANGE, true},
    {"ialltoallw", OFFPATH_EXCHANGE, true},
    {"ireduce", OFFPATH_REDUCE},
    {"iallreduce", OFFPATH_ALLREDUCE},
    {"ireduce_scatter", OFFPATH_REDUCE_SCATTER},
    {"ireduce_scatter_block", OFFPATH_REDUCE_SCATTER},
    {"iscan", OFFPATH_SCAN},
    {"iexscan", OFFPATH_EXSCAN},
    {"ineighbor_allgather", OFFPATH_EXCHANGE, true},
    {"ineighbor_allgatherv", OFFPATH_EXCHANGE, true},
    {"ineighbor_alltoall", OFFPATH_EXCHANGE, true},
    {"ineighbor_alltoallv", OFFPATH_EXCHANGE, true},
    {"ineighbor_alltoallw", OFFPATH_EXCHANGE, true},
    {"window", kNoKind, true},
    {"send", kNoKind, true},
};
static_assert(std::size(kCollectives) == kCollectivesCount);

const CollectiveInfo& info(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

}  // namespace

const char* collective_name(Collective collective) { return info(collective).name; }
bool is_irregular(Collective collective) { return info(collective).irregular; }
bool is_collective(Collective collective) { return collective < Collective::window; }
bool has_size(Collective collective) { return collective != Collective::window; }
bool knows(Collective collective, offpath_algorithm_t algorithm) {
  return (info(collective).algorithms & 1u << algorithm) != 0;
}

}  // namespace offpath::policy
