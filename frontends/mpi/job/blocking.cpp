// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/job/blocking.hpp"

#include "policy/policy.hpp"

#include <algorithm>
#include <iterator>

namespace offpath::mpi {
namespace {

struct Name {
  std::string_view text;
  uint32_t bits;
};

constexpr uint32_t bit(policy::Collective collective) { return uint32_t{1} << static_cast<uint32_t>(collective); }

constexpr Name kNames[] = {
    {"alltoall", bit(policy::Collective::ialltoall)},
    {"alltoallv", bit(policy::Collective::ialltoallv)},
    {"allgather", bit(policy::Collective::iallgather)},
    {"allgatherv", bit(policy::Collective::iallgatherv)},
    {"bcast", bit(policy::Collective::ibcast)},
    {"allreduce", bit(policy::Collective::iallreduce)},
    {"all", UINT32_MAX},
    {"none", 0},
};

}  // namespace

base::Result<uint32_t> parse_blocking(std::string_view text) {
  uint32_t bits = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto* name =
        std::find_if(std::begin(kNames), std::end(kNames), [word](const Name& known) { return known.text == word; });
    if (name == std::end(kNames)) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT,
                                 "OFFPATH_MPI_BLOCKING names '%.*s' (it takes alltoall, alltoallv, allgather, "
                                 "allgatherv, bcast, allreduce, all, none). Correct it",
                                 static_cast<int>(std::min<size_t>(word.size(), 40)), word.data());
    }
    bits |= name->bits;
  }
  return bits;
}

}  // namespace offpath::mpi
