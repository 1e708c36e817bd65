// SPDX-License-Identifier: BSD-3-Clause
// The collectives as the service does them, and their handlers.
#include "mpi/collectives/describing.hpp"
#include "mpi/collectives/forms.hpp"
#include "mpi/native/handlers.hpp"

namespace offpath::mpi {
namespace {

using enum policy::Collective;

using Small = Signatures<Forms, SmallCounts>;
using Large = Signatures<Forms, LargeCounts>;

}  // namespace

#define OFFPATH_HANDLERS(id, nonblocking_name, init_name, signature)                                     \
  const decltype(Native::nonblocking_name) handlers::nonblocking_name = &signature::nonblocking<k_##id>; \
  const decltype(Native::init_name) handlers::init_name = &signature::persistent<k_##id, &Native::init_name>;

static constexpr Offloadable k_barrier{{ibarrier, &Small::Nothing::issue<&Native::Ibarrier>, nullptr},
                                       &describe_barrier};
OFFPATH_HANDLERS(barrier, Ibarrier, Barrier_init, Small::Nothing)

#define OFFPATH_COLLECTIVE(name, small, signature, meaning, shape, describe)                                    \
  static constexpr Offloadable k_##small{                                                                       \
      {i##small, &Small::signature::issue<&Native::I##small>, &Large::signature::issue<&Native::I##small##_c>}, \
      &describe_##describe};                                                                                    \
  OFFPATH_HANDLERS(small, I##small, name##_init, Small::signature)                                              \
  OFFPATH_HANDLERS(small, I##small##_c, name##_init_c, Large::signature)
#include "mpi/native/collectives.def"
#undef OFFPATH_HANDLERS

// The blocking forms that OFFPATH_MPI_BLOCKING may name.
#define OFFPATH_BLOCKING(id, name, signature)                                                       \
  const decltype(Native::name) handlers::name = &Small::signature::blocking<k_##id, &Native::name>; \
  const decltype(Native::name##_c) handlers::name##_c = &Large::signature::blocking<k_##id, &Native::name##_c>;

OFFPATH_BLOCKING(bcast, Bcast, Broadcast)
OFFPATH_BLOCKING(allgather, Allgather, Even)
OFFPATH_BLOCKING(allgatherv, Allgatherv, UnevenRecv)
OFFPATH_BLOCKING(alltoall, Alltoall, Even)
OFFPATH_BLOCKING(alltoallv, Alltoallv, Uneven)
OFFPATH_BLOCKING(allreduce, Allreduce, Reduction)

#undef OFFPATH_BLOCKING

}  // namespace offpath::mpi
