// SPDX-License-Identifier: BSD-3-Clause
// The collectives, a row each, and the handlers that follow from it.
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

static constexpr Offloadable k_ibarrier{{ibarrier, &Small::Nothing::issue<&Native::Ibarrier>, nullptr},
                                        &describe_barrier};
OFFPATH_HANDLERS(ibarrier, Ibarrier, Barrier_init, Small::Nothing)

// id in the policy, MPI's nonblocking and persistent functions, description, signature
#define OFFPATH_ROW(id, nonblocking_name, init_name, describe, signature)                        \
  static constexpr Offloadable k_##id{{id, &Small::signature::issue<&Native::nonblocking_name>,  \
                                       &Large::signature::issue<&Native::nonblocking_name##_c>}, \
                                      &describe};                                                \
  OFFPATH_HANDLERS(id, nonblocking_name, init_name, Small::signature)                            \
  OFFPATH_HANDLERS(id, nonblocking_name##_c, init_name##_c, Large::signature)

OFFPATH_ROW(ibcast, Ibcast, Bcast_init, describe_bcast, Broadcast)
OFFPATH_ROW(igather, Igather, Gather_init, describe_gather, EvenRooted)
OFFPATH_ROW(igatherv, Igatherv, Gatherv_init, describe_gather, UnevenRecvRooted)
OFFPATH_ROW(iscatter, Iscatter, Scatter_init, describe_scatter, EvenRooted)
OFFPATH_ROW(iscatterv, Iscatterv, Scatterv_init, describe_scatter, UnevenSendRooted)
OFFPATH_ROW(iallgather, Iallgather, Allgather_init, describe_allgather, Even)
OFFPATH_ROW(iallgatherv, Iallgatherv, Allgatherv_init, describe_allgather, UnevenRecv)
OFFPATH_ROW(ialltoall, Ialltoall, Alltoall_init, describe_alltoall, Even)
OFFPATH_ROW(ialltoallv, Ialltoallv, Alltoallv_init, describe_alltoall, Uneven)
OFFPATH_ROW(ialltoallw, Ialltoallw, Alltoallw_init, describe_alltoall, Typed)
OFFPATH_ROW(ireduce, Ireduce, Reduce_init, describe_reduce, ReductionRooted)
OFFPATH_ROW(iallreduce, Iallreduce, Allreduce_init, describe_reduction, Reduction)
OFFPATH_ROW(ireduce_scatter, Ireduce_scatter, Reduce_scatter_init, describe_reduce_scatter, ReductionUneven)
OFFPATH_ROW(ireduce_scatter_block, Ireduce_scatter_block, Reduce_scatter_block_init, describe_reduce_scatter_block,
            Reduction)
OFFPATH_ROW(iscan, Iscan, Scan_init, describe_reduction, Reduction)
OFFPATH_ROW(iexscan, Iexscan, Exscan_init, describe_reduction, Reduction)
OFFPATH_ROW(ineighbor_allgather, Ineighbor_allgather, Neighbor_allgather_init, describe_neighbor_allgather, Even)
OFFPATH_ROW(ineighbor_allgatherv, Ineighbor_allgatherv, Neighbor_allgatherv_init, describe_neighbor_allgather,
            UnevenRecv)
OFFPATH_ROW(ineighbor_alltoall, Ineighbor_alltoall, Neighbor_alltoall_init, describe_neighbor_alltoall, Even)
OFFPATH_ROW(ineighbor_alltoallv, Ineighbor_alltoallv, Neighbor_alltoallv_init, describe_neighbor_alltoall, Uneven)
OFFPATH_ROW(ineighbor_alltoallw, Ineighbor_alltoallw, Neighbor_alltoallw_init, describe_neighbor_alltoall, TypedBytes)

#undef OFFPATH_ROW
#undef OFFPATH_HANDLERS

// The blocking forms that OFFPATH_MPI_BLOCKING may name.
#define OFFPATH_BLOCKING(id, name, signature)                                                       \
  const decltype(Native::name) handlers::name = &Small::signature::blocking<k_##id, &Native::name>; \
  const decltype(Native::name##_c) handlers::name##_c = &Large::signature::blocking<k_##id, &Native::name##_c>;

OFFPATH_BLOCKING(ibcast, Bcast, Broadcast)
OFFPATH_BLOCKING(iallgather, Allgather, Even)
OFFPATH_BLOCKING(iallgatherv, Allgatherv, UnevenRecv)
OFFPATH_BLOCKING(ialltoall, Alltoall, Even)
OFFPATH_BLOCKING(ialltoallv, Alltoallv, Uneven)
OFFPATH_BLOCKING(iallreduce, Allreduce, Reduction)

#undef OFFPATH_BLOCKING

}  // namespace offpath::mpi
