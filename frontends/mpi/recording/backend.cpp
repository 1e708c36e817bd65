// SPDX-License-Identifier: BSD-3-Clause
// The back end that the doorway opens instead of the offloading one when a profile is asked for: every handler calls
// the native function and records what was asked and how long it took. What has no handler here is native.
#include "backend.h"

#include "recording/described.hpp"

#include <array>
#include <cstdlib>
#include <exception>
#include <span>
#include <tuple>

namespace offpath::mpi::recording {
namespace {

// A guest never throws: out of memory ends the recording only.
void guarded(auto&& record) {
  const Inside inside;
  try {
    record();
  } catch (const std::exception&) {
    log.stop();
  }
}

bool passes() { return Inside::here() || !log.on(); }

#define OFFPATH_CALL(name) \
  const Call call { name, log.since_start_ns(), __builtin_return_address(0) }

// ---- collectives ------------------------------------------------------------------------------------------------

template <typename... Fields>
struct Recorded : Signature<Fields...> {
  using Base = Signature<Fields...>;

  template <const Kind& kind, auto function>
  static int nonblocking(typename Fields::Value... values, MPI_Comm comm, MPI_Request* request) {
    if (passes()) return (native.*function)(values..., comm, request);
    OFFPATH_CALL(kind.name);
    const int code = (native.*function)(values..., comm, request);
    guarded([&] {
      if (code == MPI_SUCCESS) {
        log.remember(*request, log.post(call, describe(kind, Base::collect(values...), comm), comm, false));
      }
    });
    return code;
  }

  template <const Kind& kind, auto function>
  static int persistent(typename Fields::Value... values, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    const int code = (native.*function)(values..., comm, info, request);
    if (passes() || code != MPI_SUCCESS) return code;
    guarded([&] { log.remember_persistent(*request, describe(kind, Base::collect(values...), comm), comm); });
    return code;
  }

  template <const Kind& kind, auto function>
  static int blocking(typename Fields::Value... values, MPI_Comm comm) {
    if (passes()) return (native.*function)(values..., comm);
    OFFPATH_CALL(kind.name + 1);  // without the i of the nonblocking form
    const int code = (native.*function)(values..., comm);
    guarded([&] { log.post(call, describe(kind, Base::collect(values...), comm), comm, true); });
    return code;
  }
};

using Nothing = Recorded<>;
using Broadcast = Recorded<RecvBuffer, RecvCount, RecvType, Root>;
using Even = Recorded<SendBuffer, SendCount, SendType, RecvBuffer, RecvCount, RecvType>;
using EvenRooted = Recorded<SendBuffer, SendCount, SendType, RecvBuffer, RecvCount, RecvType, Root>;
using UnevenRecv = Recorded<SendBuffer, SendCount, SendType, RecvBuffer, RecvCounts, RecvDispls, RecvType>;
using UnevenRecvRooted = Recorded<SendBuffer, SendCount, SendType, RecvBuffer, RecvCounts, RecvDispls, RecvType, Root>;
using UnevenSendRooted = Recorded<SendBuffer, SendCounts, SendDispls, SendType, RecvBuffer, RecvCount, RecvType, Root>;
using Uneven = Recorded<SendBuffer, SendCounts, SendDispls, SendType, RecvBuffer, RecvCounts, RecvDispls, RecvType>;
using Typed = Recorded<SendBuffer, SendCounts, SendDispls, SendTypes, RecvBuffer, RecvCounts, RecvDispls, RecvTypes>;
using Reduction = Recorded<SendBuffer, RecvBuffer, RecvCount, RecvType, Operator>;
using ReductionRooted = Recorded<SendBuffer, RecvBuffer, RecvCount, RecvType, Operator, Root>;
using ReductionUneven = Recorded<SendBuffer, RecvBuffer, RecvCounts, RecvType, Operator>;

// ---- waiting ----------------------------------------------------------------------------------------------------

using Requests = std::vector<MPI_Request>;

Requests copy_of(const MPI_Request* requests, int count) {
  return count > 0 ? Requests(requests, requests + count) : Requests();
}

void record_wait(const Call& call, const Requests& done, bool complete = true) {
  guarded([&] {
    log.wait(call, log.operations_of(done), complete);
    log.forget(done);
  });
}

int Wait(MPI_Request* request, MPI_Status* status) {
  if (passes()) return native.Wait(request, status);
  const Requests before{*request};
  OFFPATH_CALL("Wait");
  const int code = native.Wait(request, status);
  record_wait(call, before);
  return code;
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (passes()) return native.Waitall(count, requests, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Waitall");
  const int code = native.Waitall(count, requests, statuses);
  record_wait(call, before);
  return code;
}

Requests chosen(const Requests& from, std::span<const int> indices) {
  Requests result;
  for (const int i : indices) {
    if (i >= 0 && static_cast<size_t>(i) < from.size()) result.push_back(from[static_cast<size_t>(i)]);
  }
  return result;
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (passes()) return native.Waitany(count, requests, index, status);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Waitany");
  const int code = native.Waitany(count, requests, index, status);
  record_wait(call, chosen(before, {index, 1}));
  return code;
}

int Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (passes()) return native.Waitsome(count, requests, done, indices, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Waitsome");
  const int code = native.Waitsome(count, requests, done, indices, statuses);
  const size_t found = *done == MPI_UNDEFINED ? 0 : static_cast<size_t>(*done);
  record_wait(call, chosen(before, {indices, found}));
  return code;
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (passes()) return native.Test(request, flag, status);
  const Requests before{*request};
  OFFPATH_CALL("Test");
  const int code = native.Test(request, flag, status);
  record_wait(call, *flag != 0 ? before : Requests(), *flag != 0);
  return code;
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (passes()) return native.Testall(count, requests, flag, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Testall");
  const int code = native.Testall(count, requests, flag, statuses);
  record_wait(call, *flag != 0 ? before : Requests(), *flag != 0);
  return code;
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (passes()) return native.Testany(count, requests, index, flag, status);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Testany");
  const int code = native.Testany(count, requests, index, flag, status);
  record_wait(call, *flag != 0 ? chosen(before, {index, 1}) : Requests(), *flag != 0);
  return code;
}

int Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (passes()) return native.Testsome(count, requests, done, indices, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL("Testsome");
  const int code = native.Testsome(count, requests, done, indices, statuses);
  const size_t found = *done == MPI_UNDEFINED ? 0 : static_cast<size_t>(*done);
  record_wait(call, chosen(before, {indices, found}), found > 0);
  return code;
}

int Start(MPI_Request* request) {
  if (passes()) return native.Start(request);
  OFFPATH_CALL("Start");
  const int code = native.Start(request);
  guarded([&] { log.start_persistent(call, *request); });
  return code;
}

int Startall(int count, MPI_Request* requests) {
  if (passes()) return native.Startall(count, requests);
  OFFPATH_CALL("Startall");
  const int code = native.Startall(count, requests);
  guarded([&] {
    for (const MPI_Request request : copy_of(requests, count)) log.start_persistent(call, request);
  });
  return code;
}

// ---- one-sided --------------------------------------------------------------------------------------------------

// `count`, `type`, `target`: where those arguments stand; without a count there is one element.
template <auto function, const Kind& kind, int count, size_t type, size_t target>
struct RemoteCall;
template <typename... Values, int (*Native::*function)(Values...), const Kind& kind, int count, size_t type,
          size_t target>
struct RemoteCall<function, kind, count, type, target> {
  static int handler(Values... values) {
    if (passes()) return (native.*function)(values...);
    OFFPATH_CALL(kind.name);
    const int code = (native.*function)(values...);
    guarded([&] {
      const std::tuple all(values...);
      int64_t elements = 1;
      if constexpr (count >= 0) elements = static_cast<int64_t>(std::get<size_t(count)>(all));
      constexpr bool with_request =
          std::is_same_v<std::tuple_element_t<sizeof...(Values) - 1, std::tuple<Values...>>, MPI_Request*>;
      const MPI_Win window = std::get<sizeof...(Values) - (with_request ? 2 : 1)>(all);
      const Posted posted{kind.name, bytes_of(elements, std::get<type>(all)), std::get<target>(all), {}};
      const uint64_t operation = log.post_remote(call, posted, window);
      if constexpr (with_request) {
        if (operation != UINT64_MAX) log.remember(*std::get<sizeof...(Values) - 1>(all), operation);
      }
    });
    return code;
  }
};

// What waits for one-sided operations: to the target that is the first argument, or to all.
template <auto function, const Kind& kind, bool to_one>
struct Flush;
template <typename... Values, int (*Native::*function)(Values...), const Kind& kind, bool to_one>
struct Flush<function, kind, to_one> {
  static int handler(Values... values) {
    if (passes()) return (native.*function)(values...);
    OFFPATH_CALL(kind.name);
    const int code = (native.*function)(values...);
    guarded([&] {
      const std::tuple all(values...);
      int target = -1;
      if constexpr (to_one) target = std::get<0>(all);
      log.wait(call, log.take_remote(std::get<sizeof...(Values) - 1>(all), target), true);
    });
    return code;
  }
};

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  const int code = native.Win_create(base, size, unit, info, comm, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
  const int code = native.Win_allocate(size, unit, info, comm, base, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  const int code = native.Win_create_dynamic(info, comm, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

int Win_free(MPI_Win* window) {
  if (!passes()) guarded([&] { log.forget_window(*window); });
  return native.Win_free(window);
}

// ---- life -------------------------------------------------------------------------------------------------------

void begin() {
  const char* prefix = getenv("OFFPATH_PROFILE");
  if (prefix == nullptr || *prefix == '\0') return;
  guarded([&] { log.start(prefix); });
}

int Init(int* argc, char*** argv) {
  const int code = native.Init(argc, argv);
  if (code == MPI_SUCCESS) begin();
  return code;
}

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = native.Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) begin();
  return code;
}

int Finalize() {
  log.stop();
  return native.Finalize();
}

int Comm_free(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return native.Comm_free(comm);
}

int Comm_disconnect(MPI_Comm* comm) {
  if (!passes()) guarded([&] { log.forget_communicator(*comm); });
  return native.Comm_disconnect(comm);
}

// MPI's function, its kind and shape, its signature
#define OFFPATH_RECORDED(X, Y)                                                                          \
  X(Ibarrier, Barrier_init, ibarrier, nothing, Nothing)                                                 \
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
  Y(Barrier, ibarrier, Nothing)                                                                         \
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
OFFPATH_RECORDED(OFFPATH_KIND, OFFPATH_NOTHING)

constexpr Kind k_put{"put", Shape::vector}, k_get{"get", Shape::vector}, k_accumulate{"accumulate", Shape::vector};
constexpr Kind k_flush{"Win_flush", Shape::nothing}, k_flush_all{"Win_flush_all", Shape::nothing},
    k_unlock{"Win_unlock", Shape::nothing}, k_unlock_all{"Win_unlock_all", Shape::nothing},
    k_fence{"Win_fence", Shape::nothing}, k_complete{"Win_complete", Shape::nothing};

}  // namespace
}  // namespace offpath::mpi::recording

extern "C" __attribute__((visibility("default"))) int offpath_mpi_backend_open(offpath_backend_t* backend) {
  using namespace offpath::mpi;
  using namespace offpath::mpi::recording;
  if (backend->struct_bytes != sizeof(*backend) || backend->function_count != OFFPATH_FUNCTION_COUNT) return -1;
  if (!native.load(backend->mpi)) return -1;
  const auto set = [&](int function, auto* handler) { backend->handlers[function] = reinterpret_cast<void*>(handler); };
#define OFFPATH_SET_NONBLOCKING(function, init, id, shape, signature)                              \
  set(OFFPATH_FUNCTION_##function, &recording::signature::nonblocking<k_##id, &Native::function>); \
  if (native.init != nullptr) set(OFFPATH_FUNCTION_##init, &recording::signature::persistent<k_##id, &Native::init>);
#define OFFPATH_SET_BLOCKING(function, id, signature) \
  set(OFFPATH_FUNCTION_##function, &recording::signature::blocking<k_##id, &Native::function>);
  OFFPATH_RECORDED(OFFPATH_SET_NONBLOCKING, OFFPATH_SET_BLOCKING)
#define OFFPATH_SET(name) set(OFFPATH_FUNCTION_##name, &recording::name);
  OFFPATH_SET(Init)
  OFFPATH_SET(Init_thread) OFFPATH_SET(Finalize) OFFPATH_SET(Comm_free) OFFPATH_SET(Comm_disconnect) OFFPATH_SET(Wait)
      OFFPATH_SET(Waitall) OFFPATH_SET(Waitany) OFFPATH_SET(Waitsome) OFFPATH_SET(Test) OFFPATH_SET(Testall)
          OFFPATH_SET(Testany) OFFPATH_SET(Testsome) OFFPATH_SET(Start) OFFPATH_SET(Startall) OFFPATH_SET(Win_create)
              OFFPATH_SET(Win_allocate) OFFPATH_SET(Win_create_dynamic) OFFPATH_SET(Win_free)
#define OFFPATH_SET_REMOTE(name, kind, count, type, target) \
  set(OFFPATH_FUNCTION_##name, &RemoteCall<&Native::name, kind, count, type, target>::handler);
                  OFFPATH_SET_REMOTE(Put, k_put, 1, 2, 3) OFFPATH_SET_REMOTE(Get, k_get, 1, 2, 3) OFFPATH_SET_REMOTE(
                      Accumulate, k_accumulate, 1, 2, 3) OFFPATH_SET_REMOTE(Rput, k_put, 1, 2, 3)
                      OFFPATH_SET_REMOTE(Rget, k_get, 1, 2, 3) OFFPATH_SET_REMOTE(Raccumulate, k_accumulate, 1, 2, 3)
                          OFFPATH_SET_REMOTE(Get_accumulate, k_get, 4, 5, 6) OFFPATH_SET_REMOTE(
                              Rget_accumulate, k_get, 4, 5, 6) OFFPATH_SET_REMOTE(Fetch_and_op, k_get, -1, 2, 3)
                              OFFPATH_SET_REMOTE(Compare_and_swap, k_get, -1, 3, 4)
#define OFFPATH_SET_FLUSH(name, kind, to_one) \
  set(OFFPATH_FUNCTION_##name, &Flush<&Native::name, kind, to_one>::handler);
                                  OFFPATH_SET_FLUSH(Win_flush, k_flush, true)
                                      OFFPATH_SET_FLUSH(Win_flush_all, k_flush_all, false)
                                          OFFPATH_SET_FLUSH(Win_flush_local, k_flush, true)
                                              OFFPATH_SET_FLUSH(Win_flush_local_all, k_flush_all, false)
                                                  OFFPATH_SET_FLUSH(Win_unlock, k_unlock, true) OFFPATH_SET_FLUSH(
                                                      Win_unlock_all, k_unlock_all, false)
                                                      OFFPATH_SET_FLUSH(Win_fence, k_fence, false)
                                                          OFFPATH_SET_FLUSH(Win_complete, k_complete, false) return 0;
}
