// SPDX-License-Identifier: BSD-3-Clause
// Collectives: nonblocking, persistent and blocking.
#include "mpi/native/signatures.hpp"
#include "mpi/recording/described.hpp"
#include "mpi/recording/handlers.hpp"

namespace offpath::mpi::recording {
namespace {

template <typename Width, typename... Fields>
struct Recorded : Signature<Width, Fields...> {
  using Base = Signature<Width, Fields...>;

  template <const Kind& kind, auto function>
  static int nonblocking(typename Fields::Value... values, MPI_Comm comm, MPI_Request* request) {
    if (passes()) return (next.*function)(values..., comm, request);
    OFFPATH_POSTING(called<function>, choose(comm, site));
    const int code = (next.*function)(values..., comm, request);
    if (code == MPI_SUCCESS)
      guarded([&] { log.post(call, ticket, said<kind>(ticket, comm, values...), false, request); });
    return code;
  }

  template <const Kind& kind, auto function>
  static int persistent(typename Fields::Value... values, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    if (passes()) return (next.*function)(values..., comm, info, request);
    const Posting posting(kUnrecorded);
    const int code = (next.*function)(values..., comm, info, request);
    if (code != MPI_SUCCESS) return code;
    guarded([&] { log.remember_persistent(*request, describe(kind, Base::collect(values...), comm), comm); });
    return code;
  }

  template <const Kind& kind, auto function>
  static int blocking(typename Fields::Value... values, MPI_Comm comm) {
    if (passes()) return (next.*function)(values..., comm);
    OFFPATH_POSTING(called<function>, choose(comm, site));
    const int code = (next.*function)(values..., comm);
    guarded([&] { log.post(call, ticket, said<kind>(ticket, comm, values...), true, nullptr); });
    return code;
  }

 private:
  template <const Kind& kind>
  static Posted said(const Ticket& ticket, MPI_Comm comm, typename Fields::Value... values) {
    return ticket.recorded() ? describe(kind, Base::collect(values...), comm) : Posted();
  }
};

using Small = Signatures<Recorded, SmallCounts>;
using Large = Signatures<Recorded, LargeCounts>;

// MPI's function, its kind and shape, its signature
#define OFFPATH_RECORDED(X, Y)                                                                          \
  X(Ibcast, Bcast_init, ibcast, vector, Broadcast)                                                      \
  X(Igather, Gather_init, igather, gather, EvenRooted)                                                  \
  X(Igatherv, Gatherv_init, igatherv, gatherv, UnevenRecvRooted)                                        \
  X(Iscatter, Scatter_init, iscatter, scatter, EvenRooted)                                              \
  X(Iscatterv, Scatterv_init, iscatterv, scatterv, UnevenSendRooted)                                    \
  X(Iallgather, Allgather_init, iallgather, allgather, Even)                                            \
  X(Iallgatherv, Allgatherv_init, iallgatherv, allgather, UnevenRecv)                                   \
  X(Ialltoall, Alltoall_init, ialltoall, even, Even)                                                    \
  X(Ialltoallv, Alltoallv_init, ialltoallv, uneven, Uneven)                                             \
  X(Ialltoallw, Alltoallw_init, ialltoallw, uneven, Typed)                                              \
  X(Ireduce, Reduce_init, ireduce, vector, ReductionRooted)                                             \
  X(Iallreduce, Allreduce_init, iallreduce, vector, Reduction)                                          \
  X(Ireduce_scatter, Reduce_scatter_init, ireduce_scatter, vector_by_rank, ReductionUneven)             \
  X(Ireduce_scatter_block, Reduce_scatter_block_init, ireduce_scatter_block, vector_by_rank, Reduction) \
  X(Iscan, Scan_init, iscan, vector, Reduction)                                                         \
  X(Iexscan, Exscan_init, iexscan, vector, Reduction)                                                   \
  Y(Bcast, ibcast, Broadcast)                                                                           \
  Y(Gather, igather, EvenRooted)                                                                        \
  Y(Gatherv, igatherv, UnevenRecvRooted)                                                                \
  Y(Scatter, iscatter, EvenRooted)                                                                      \
  Y(Scatterv, iscatterv, UnevenSendRooted)                                                              \
  Y(Allgather, iallgather, Even)                                                                        \
  Y(Allgatherv, iallgatherv, UnevenRecv)                                                                \
  Y(Alltoall, ialltoall, Even)                                                                          \
  Y(Alltoallv, ialltoallv, Uneven)                                                                      \
  Y(Reduce, ireduce, ReductionRooted)                                                                   \
  Y(Allreduce, iallreduce, Reduction)                                                                   \
  Y(Reduce_scatter, ireduce_scatter, ReductionUneven)                                                   \
  Y(Reduce_scatter_block, ireduce_scatter_block, Reduction)                                             \
  Y(Scan, iscan, Reduction)                                                                             \
  Y(Exscan, iexscan, Reduction)

#define OFFPATH_KIND(function, init, id, shape, signature) constexpr Kind k_##id{#id, Shape::shape};
#define OFFPATH_NOTHING(...)
OFFPATH_KIND(Ibarrier, Barrier_init, ibarrier, nothing, Nothing)
OFFPATH_RECORDED(OFFPATH_KIND, OFFPATH_NOTHING)

}  // namespace

void set_collectives(void** handlers) {
  const auto set = [handlers](int function, auto* handler) { handlers[function] = reinterpret_cast<void*>(handler); };
#define OFFPATH_SET_FORMS(function, init, id, signature)                                \
  set(OFFPATH_FUNCTION_##function, &signature::nonblocking<k_##id, &Native::function>); \
  if (native.init != nullptr) set(OFFPATH_FUNCTION_##init, &signature::persistent<k_##id, &Native::init>);
  OFFPATH_SET_FORMS(Ibarrier, Barrier_init, ibarrier, Small::Nothing)
  set(OFFPATH_FUNCTION_Barrier, &Small::Nothing::blocking<k_ibarrier, &Native::Barrier>);
#define OFFPATH_SET_NONBLOCKING(function, init, id, shape, signature) \
  OFFPATH_SET_FORMS(function, init, id, Small::signature)             \
  OFFPATH_SET_FORMS(function##_c, init##_c, id, Large::signature)
#define OFFPATH_SET_BLOCKING(function, id, signature)                                       \
  set(OFFPATH_FUNCTION_##function, &Small::signature::blocking<k_##id, &Native::function>); \
  set(OFFPATH_FUNCTION_##function##_c, &Large::signature::blocking<k_##id, &Native::function##_c>);
  OFFPATH_RECORDED(OFFPATH_SET_NONBLOCKING, OFFPATH_SET_BLOCKING)
}

}  // namespace offpath::mpi::recording
