// SPDX-License-Identifier: BSD-3-Clause
// Collectives: nonblocking, persistent and blocking.
#include "mpi/native/signatures.hpp"
#include "mpi/recording/described.hpp"
#include "mpi/recording/handlers.hpp"

namespace offpath::mpi::recording {
namespace {

// Without a request: of a call that blocks.
[[gnu::noinline]] void post(const Call& call, const Ticket& ticket, const Kind& kind, const Arguments& arguments,
                            MPI_Comm comm, const MPI_Request* request) {
  guarded([&] {
    const bool blocking = request == nullptr;
    log.post(call, ticket, ticket.recorded() ? describe(kind, arguments, comm) : Posted(), blocking, request);
  });
}

[[gnu::noinline]] void remember(MPI_Request request, const Kind& kind, const Arguments& arguments, MPI_Comm comm) {
  guarded([&] { log.remember_persistent(request, describe(kind, arguments, comm), comm); });
}

template <typename Width, typename... Fields>
struct Recorded : Signature<Width, Fields...> {
  using Base = Signature<Width, Fields...>;

  template <const Kind& kind, auto function>
  static int nonblocking(typename Fields::Value... values, MPI_Comm comm, MPI_Request* request) {
    if (passes()) return (next.*function)(values..., comm, request);
    OFFPATH_POSTING(called<function>, choose, comm);
    const int code = (next.*function)(values..., comm, request);
    if (code == MPI_SUCCESS) post(call, ticket, kind, Base::collect(values...), comm, request);
    return code;
  }

  template <const Kind& kind, auto function>
  static int persistent(typename Fields::Value... values, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    if (passes()) return (next.*function)(values..., comm, info, request);
    const Posting posting(kUnrecorded);
    const int code = (next.*function)(values..., comm, info, request);
    if (code == MPI_SUCCESS) remember(*request, kind, Base::collect(values...), comm);
    return code;
  }

  template <const Kind& kind, auto function>
  static int blocking(typename Fields::Value... values, MPI_Comm comm) {
    if (passes()) return (next.*function)(values..., comm);
    OFFPATH_POSTING(called<function>, choose, comm);
    const int code = (next.*function)(values..., comm);
    post(call, ticket, kind, Base::collect(values...), comm, nullptr);
    return code;
  }
};

using Small = Signatures<Recorded, SmallCounts>;
using Large = Signatures<Recorded, LargeCounts>;

constexpr Kind k_barrier{"ibarrier", Shape::nothing};
#define OFFPATH_COLLECTIVE(name, small, signature, meaning, shape, ...) \
  constexpr Kind k_##small{"i" #small, Shape::shape};
#define OFFPATH_NEIGHBORHOOD(...)
#include "mpi/native/collectives.def"

}  // namespace

void set_collectives(void** handlers) {
  const auto set = [handlers](int function, auto* handler) { handlers[function] = reinterpret_cast<void*>(handler); };
#define OFFPATH_SET_FORMS(function, init, id, signature)                                \
  set(OFFPATH_FUNCTION_##function, &signature::nonblocking<k_##id, &Native::function>); \
  if (native.init != nullptr) set(OFFPATH_FUNCTION_##init, &signature::persistent<k_##id, &Native::init>);
#define OFFPATH_SET_BLOCKING(function, id, signature) \
  set(OFFPATH_FUNCTION_##function, &signature::blocking<k_##id, &Native::function>);
  OFFPATH_SET_FORMS(Ibarrier, Barrier_init, barrier, Small::Nothing)
  OFFPATH_SET_BLOCKING(Barrier, barrier, Small::Nothing)
#define OFFPATH_BLOCKING_NATIVE(name, small, signature, ...)        \
  OFFPATH_SET_FORMS(I##small, name##_init, small, Small::signature) \
  OFFPATH_SET_FORMS(I##small##_c, name##_init_c, small, Large::signature)
#define OFFPATH_COLLECTIVE(name, small, signature, ...) \
  OFFPATH_BLOCKING_NATIVE(name, small, signature)       \
  OFFPATH_SET_BLOCKING(name, small, Small::signature)   \
  OFFPATH_SET_BLOCKING(name##_c, small, Large::signature)
#define OFFPATH_NEIGHBORHOOD(...)
#include "mpi/native/collectives.def"
#undef OFFPATH_SET_BLOCKING
#undef OFFPATH_SET_FORMS
}

}  // namespace offpath::mpi::recording
