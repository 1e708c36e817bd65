// SPDX-License-Identifier: BSD-3-Clause
// The handlers of MPI's one-sided communication, with int counts and with large ones.
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/recording/decision.hpp"
#include "mpi/rma/transfer.hpp"
#include "mpi/rma/windows.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

int perform(const char* call, OffloadedWindow& window, const Transfer& transfer, MPI_Request* request) {
  recording::decision.offloaded = true;
  recording::decision.why = "policy";
  int code = MPI_SUCCESS;
  try {
    const Inside inside;
    if (request == nullptr) {
      code = start(window, transfer, nullptr);
    } else {
      auto made = std::make_unique<TransferRequest>(call, window.shared_from_this());
      code = start(window, transfer, made.get());
      if (code == MPI_SUCCESS && made->native() != MPI_REQUEST_NULL) {
        *request = made->native();
      } else if (code == MPI_SUCCESS) {
        code = offloader.submit(std::move(made), request);
      }
    }
  } catch (const std::exception&) {
    code = MPI_ERR_NO_MEM;
  }
  return window.raise(call, code);
}

// The window, or nullptr: the call is native.
OffloadedWindow* served(MPI_Win win) {
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr && !Inside::here()) windows.totals().elsewhere_count.fetch_add(1, std::memory_order_relaxed);
  return window;
}

MPI_Request* one_of() { return nullptr; }
MPI_Request* one_of(MPI_Request* request) { return request; }

// The forms differ in their counts' type and in whether a request comes last.
template <typename Count>
struct Calls {
  template <auto function, typename... Request>
  static int put(const void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint displacement,
                 Count count, MPI_Datatype type, MPI_Win win, Request... request) {
    OffloadedWindow* const window = served(win);
    if (window == nullptr) {
      return (native.*function)(origin, origin_count, origin_type, target, displacement, count, type, win, request...);
    }
    Transfer transfer{OFFPATH_PUT, target, displacement, count, type};
    transfer.send = {origin, origin_count, origin_type};
    return perform(name_of(function), *window, transfer, one_of(request...));
  }

  template <auto function, typename... Request>
  static int get(void* origin, Count origin_count, MPI_Datatype origin_type, int target, MPI_Aint displacement,
                 Count count, MPI_Datatype type, MPI_Win win, Request... request) {
    OffloadedWindow* const window = served(win);
    if (window == nullptr) {
      return (native.*function)(origin, origin_count, origin_type, target, displacement, count, type, win, request...);
    }
    Transfer transfer{OFFPATH_GET, target, displacement, count, type};
    transfer.result = {origin, origin_count, origin_type};
    return perform(name_of(function), *window, transfer, one_of(request...));
  }

  template <auto function, typename... Request>
  static int accumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, int target,
                        MPI_Aint displacement, Count count, MPI_Datatype type, MPI_Op op, MPI_Win win,
                        Request... request) {
    OffloadedWindow* const window = served(win);
    if (window == nullptr) {
      return (native.*function)(origin, origin_count, origin_type, target, displacement, count, type, op, win,
                                request...);
    }
    Transfer transfer{OFFPATH_ACCUMULATE, target, displacement, count, type};
    transfer.send = {origin, origin_count, origin_type};
    transfer.op = op;
    return perform(name_of(function), *window, transfer, one_of(request...));
  }

  template <auto function, typename... Request>
  static int get_accumulate(const void* origin, Count origin_count, MPI_Datatype origin_type, void* result,
                            Count result_count, MPI_Datatype result_type, int target, MPI_Aint displacement,
                            Count count, MPI_Datatype type, MPI_Op op, MPI_Win win, Request... request) {
    OffloadedWindow* const window = served(win);
    if (window == nullptr) {
      return (native.*function)(origin, origin_count, origin_type, result, result_count, result_type, target,
                                displacement, count, type, op, win, request...);
    }
    Transfer transfer{OFFPATH_GET_ACCUMULATE, target, displacement, count, type};
    transfer.send = {origin, origin_count, origin_type};
    transfer.result = {result, result_count, result_type};
    transfer.op = op;
    return perform(name_of(function), *window, transfer, one_of(request...));
  }
};

int fetch_and_op(const void* origin, void* result, MPI_Datatype type, int target, MPI_Aint displacement, MPI_Op op,
                 MPI_Win win) {
  OffloadedWindow* const window = served(win);
  if (window == nullptr) return native.Fetch_and_op(origin, result, type, target, displacement, op, win);
  Transfer transfer{OFFPATH_GET_ACCUMULATE, target, displacement, 1, type};
  transfer.send = {origin, 1, type};
  transfer.result = {result, 1, type};
  transfer.op = op;
  transfer.predefined = true;
  return perform(name_of(&Native::Fetch_and_op), *window, transfer, nullptr);
}

int compare_and_swap(const void* origin, const void* compare, void* result, MPI_Datatype type, int target,
                     MPI_Aint displacement, MPI_Win win) {
  OffloadedWindow* const window = served(win);
  if (window == nullptr) return native.Compare_and_swap(origin, compare, result, type, target, displacement, win);
  Transfer transfer{OFFPATH_COMPARE_AND_SWAP, target, displacement, 1, type};
  transfer.send = {origin, 1, type};
  transfer.result = {result, 1, type};
  transfer.compare = compare;
  transfer.predefined = true;
  return perform(name_of(&Native::Compare_and_swap), *window, transfer, nullptr);
}

}  // namespace

namespace handlers {

#define OFFPATH_HANDLER(name, ...) const decltype(Native::name) name = &__VA_ARGS__
OFFPATH_HANDLER(Put, Calls<int>::put<&Native::Put>);
OFFPATH_HANDLER(Get, Calls<int>::get<&Native::Get>);
OFFPATH_HANDLER(Accumulate, Calls<int>::accumulate<&Native::Accumulate>);
OFFPATH_HANDLER(Get_accumulate, Calls<int>::get_accumulate<&Native::Get_accumulate>);
OFFPATH_HANDLER(Rput, Calls<int>::put<&Native::Rput, MPI_Request*>);
OFFPATH_HANDLER(Rget, Calls<int>::get<&Native::Rget, MPI_Request*>);
OFFPATH_HANDLER(Raccumulate, Calls<int>::accumulate<&Native::Raccumulate, MPI_Request*>);
OFFPATH_HANDLER(Rget_accumulate, Calls<int>::get_accumulate<&Native::Rget_accumulate, MPI_Request*>);
OFFPATH_HANDLER(Fetch_and_op, fetch_and_op);
OFFPATH_HANDLER(Compare_and_swap, compare_and_swap);

OFFPATH_HANDLER(Put_c, Calls<MPI_Count>::put<&Native::Put_c>);
OFFPATH_HANDLER(Get_c, Calls<MPI_Count>::get<&Native::Get_c>);
OFFPATH_HANDLER(Accumulate_c, Calls<MPI_Count>::accumulate<&Native::Accumulate_c>);
OFFPATH_HANDLER(Get_accumulate_c, Calls<MPI_Count>::get_accumulate<&Native::Get_accumulate_c>);
OFFPATH_HANDLER(Rput_c, Calls<MPI_Count>::put<&Native::Rput_c, MPI_Request*>);
OFFPATH_HANDLER(Rget_c, Calls<MPI_Count>::get<&Native::Rget_c, MPI_Request*>);
OFFPATH_HANDLER(Raccumulate_c, Calls<MPI_Count>::accumulate<&Native::Raccumulate_c, MPI_Request*>);
OFFPATH_HANDLER(Rget_accumulate_c, Calls<MPI_Count>::get_accumulate<&Native::Rget_accumulate_c, MPI_Request*>);
#undef OFFPATH_HANDLER

}  // namespace handlers
}  // namespace offpath::mpi
