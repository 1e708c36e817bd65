// SPDX-License-Identifier: BSD-3-Clause
#include "operation.hpp"

#include "movement.hpp"
#include "reduction.hpp"

namespace bench {
namespace {

struct Maker {
  const char* name;
  std::unique_ptr<Operation> (*make)(std::int64_t bytes, const std::string& field, MPI_Comm communicator);
};

template <Movement::Kind kind>
std::unique_ptr<Operation> movement(std::int64_t bytes, const std::string& field, MPI_Comm communicator) {
  return std::make_unique<Movement>(kind, bytes, field, communicator);
}

template <Reduction::Kind kind>
std::unique_ptr<Operation> reduction(std::int64_t bytes, const std::string&, MPI_Comm communicator) {
  return std::make_unique<Reduction>(kind, bytes, communicator);
}

constexpr Maker kMakers[] = {
    {"ialltoall", movement<Movement::Kind::alltoall>},
    {"ialltoallv", movement<Movement::Kind::alltoallv>},
    {"iallgather", movement<Movement::Kind::allgather>},
    {"iallgatherv", movement<Movement::Kind::allgatherv>},
    {"igather", movement<Movement::Kind::gather>},
    {"iscatter", movement<Movement::Kind::scatter>},
    {"ibcast", movement<Movement::Kind::bcast>},
    {"ireduce", reduction<Reduction::Kind::reduce>},
    {"iallreduce", reduction<Reduction::Kind::allreduce>},
    {"ireduce_scatter", reduction<Reduction::Kind::reduce_scatter>},
    {"ireduce_scatter_block", reduction<Reduction::Kind::reduce_scatter_block>},
    {"iscan", reduction<Reduction::Kind::scan>},
    {"iexscan", reduction<Reduction::Kind::exscan>},
};

}  // namespace

Words words() {
  return {"collectives",
          "--collective",
          "a nonblocking collective",
          "the v forms have counts that differ by rank around the average",
          "all bytes that a rank sends or receives, whichever is more",
          "ialltoall"};
}

std::string refused(int) { return {}; }

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const Maker& maker : kMakers) names.push_back(maker.name);
  return names;
}

std::unique_ptr<Operation> make_operation(const std::string& name, std::int64_t bytes, const std::string& field,
                                          MPI_Comm communicator) {
  for (const Maker& maker : kMakers)
    if (name == maker.name) return maker.make(bytes, field, communicator);
  return nullptr;
}

}  // namespace bench
