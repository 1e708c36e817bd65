// SPDX-License-Identifier: BSD-3-Clause
// Windows, one-sided operations and what waits for them.
#include "mpi/recording/described.hpp"
#include "mpi/recording/handlers.hpp"

#include <tuple>
#include <type_traits>

namespace offpath::mpi::recording {
namespace {

[[gnu::noinline]] void post(const Call& call, const Ticket& ticket, const Kind& kind, int64_t elements,
                            MPI_Datatype type, int target, MPI_Win window, const MPI_Request* request) {
  guarded([&] {
    log.post_remote(call, ticket, Posted{kind.name, bytes_of(elements, type), target, {}}, window, request);
  });
}

[[gnu::noinline]] void wait(const Call& call, MPI_Win window, int target) {
  guarded([&] { log.wait_remote(call, window, target); });
}

// `count`, `type`, `target`: where those arguments stand; without a count there is one element.
template <auto function, const Kind& kind, int count, size_t type, size_t target>
struct RemoteCall;
template <typename... Values, int (*Native::*function)(Values...), const Kind& kind, int count, size_t type,
          size_t target>
struct RemoteCall<function, kind, count, type, target> {
  static int handler(Values... values) {
    if (passes()) return (next.*function)(values...);
    const std::tuple all(values...);
    constexpr bool with_request =
        std::is_same_v<std::tuple_element_t<sizeof...(Values) - 1, std::tuple<Values...>>, MPI_Request*>;
    const MPI_Win window = std::get<sizeof...(Values) - (with_request ? 2 : 1)>(all);
    OFFPATH_POSTING(called<function>, choose_remote, window);
    const int code = (next.*function)(values...);
    int64_t elements = 1;
    if constexpr (count >= 0) elements = static_cast<int64_t>(std::get<size_t(count)>(all));
    const MPI_Request* request = nullptr;
    if constexpr (with_request) request = std::get<sizeof...(Values) - 1>(all);
    post(call, ticket, kind, elements, std::get<type>(all), std::get<target>(all), window, request);
    return code;
  }
};

// What waits for one-sided operations: to the target that is the first argument, or to all.
template <auto function, bool to_one>
struct Flush;
template <typename... Values, int (*Native::*function)(Values...), bool to_one>
struct Flush<function, to_one> {
  static int handler(Values... values) {
    if (passes()) return (next.*function)(values...);
    OFFPATH_CALL(called<function>);
    const int code = (next.*function)(values...);
    const std::tuple all(values...);
    int target = -1;
    if constexpr (to_one) target = std::get<0>(all);
    wait(call, std::get<sizeof...(Values) - 1>(all), target);
    return code;
  }
};

template <auto function, typename Unit>
int create(void* base, MPI_Aint size, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  const int code = (next.*function)(base, size, unit, info, comm, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

template <auto function, typename Unit>
int allocate(MPI_Aint size, Unit unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* window) {
  const int code = (next.*function)(size, unit, info, comm, base, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* window) {
  const int code = next.Win_create_dynamic(info, comm, window);
  if (!passes() && code == MPI_SUCCESS) guarded([&] { log.remember_window(*window, comm); });
  return code;
}

int Win_free(MPI_Win* window) {
  if (!passes()) guarded([&] { log.forget_window(*window); });
  return next.Win_free(window);
}

constexpr Kind k_put{"put", Shape::vector}, k_get{"get", Shape::vector}, k_accumulate{"accumulate", Shape::vector},
    k_fetch{"fetch", Shape::vector};

}  // namespace

void set_remote(void** handlers) {
  const auto set = [handlers](int function, auto* handler) { handlers[function] = reinterpret_cast<void*>(handler); };
#define OFFPATH_SET(name) set(OFFPATH_FUNCTION_##name, &name)
  set(OFFPATH_FUNCTION_Win_create, &create<&Native::Win_create, int>);
  set(OFFPATH_FUNCTION_Win_create_c, &create<&Native::Win_create_c, MPI_Aint>);
  set(OFFPATH_FUNCTION_Win_allocate, &allocate<&Native::Win_allocate, int>);
  set(OFFPATH_FUNCTION_Win_allocate_c, &allocate<&Native::Win_allocate_c, MPI_Aint>);
  OFFPATH_SET(Win_create_dynamic);
  OFFPATH_SET(Win_free);
#define OFFPATH_SET_REMOTE(name, kind, count, type, target) \
  set(OFFPATH_FUNCTION_##name, &RemoteCall<&Native::name, kind, count, type, target>::handler)
  OFFPATH_SET_REMOTE(Put, k_put, 1, 2, 3);
  OFFPATH_SET_REMOTE(Get, k_get, 1, 2, 3);
  OFFPATH_SET_REMOTE(Accumulate, k_accumulate, 1, 2, 3);
  OFFPATH_SET_REMOTE(Rput, k_put, 1, 2, 3);
  OFFPATH_SET_REMOTE(Rget, k_get, 1, 2, 3);
  OFFPATH_SET_REMOTE(Raccumulate, k_accumulate, 1, 2, 3);
  OFFPATH_SET_REMOTE(Get_accumulate, k_get, 4, 5, 6);
  OFFPATH_SET_REMOTE(Rget_accumulate, k_get, 4, 5, 6);
  OFFPATH_SET_REMOTE(Put_c, k_put, 1, 2, 3);
  OFFPATH_SET_REMOTE(Get_c, k_get, 1, 2, 3);
  OFFPATH_SET_REMOTE(Accumulate_c, k_accumulate, 1, 2, 3);
  OFFPATH_SET_REMOTE(Rput_c, k_put, 1, 2, 3);
  OFFPATH_SET_REMOTE(Rget_c, k_get, 1, 2, 3);
  OFFPATH_SET_REMOTE(Raccumulate_c, k_accumulate, 1, 2, 3);
  OFFPATH_SET_REMOTE(Get_accumulate_c, k_get, 4, 5, 6);
  OFFPATH_SET_REMOTE(Rget_accumulate_c, k_get, 4, 5, 6);
  OFFPATH_SET_REMOTE(Fetch_and_op, k_fetch, -1, 2, 3);
  OFFPATH_SET_REMOTE(Compare_and_swap, k_get, -1, 3, 4);
#define OFFPATH_SET_FLUSH(name, to_one) set(OFFPATH_FUNCTION_##name, &Flush<&Native::name, to_one>::handler)
  OFFPATH_SET_FLUSH(Win_flush, true);
  OFFPATH_SET_FLUSH(Win_flush_all, false);
  OFFPATH_SET_FLUSH(Win_flush_local, true);
  OFFPATH_SET_FLUSH(Win_flush_local_all, false);
  OFFPATH_SET_FLUSH(Win_unlock, true);
  OFFPATH_SET_FLUSH(Win_unlock_all, false);
  OFFPATH_SET_FLUSH(Win_fence, false);
  OFFPATH_SET_FLUSH(Win_complete, false);
#undef OFFPATH_SET
}

}  // namespace offpath::mpi::recording
