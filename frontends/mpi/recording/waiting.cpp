// SPDX-License-Identifier: BSD-3-Clause
// Waiting, testing, and starting persistent operations.
#include "mpi/recording/handlers.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace offpath::mpi::recording {
namespace {

// What a call has completed: nothing, all of its requests, or some.
struct Ended {
  bool complete;
  std::optional<std::span<const int>> which = std::nullopt;
};

// By the function's code and what follows its requests. A call that failed may have left the count as it was.
Ended all(int, MPI_Status*) { return {true}; }
Ended all_if(int, const int* flag, MPI_Status*) { return {*flag != 0}; }
Ended any(int, const int* index, MPI_Status*) { return {true, std::span(index, 1)}; }
Ended any_if(int, const int* index, const int* flag, MPI_Status*) { return {*flag != 0, std::span(index, 1)}; }
Ended some(int code, const int* done, const int* indices, MPI_Status*) {
  const bool known = code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS;
  return {true, std::span(indices, known ? static_cast<size_t>(std::max(*done, 0)) : 0)};  // MPI_UNDEFINED is negative
}
Ended some_if(int code, const int* done, const int* indices, MPI_Status* statuses) {
  const Ended ended = some(code, done, indices, statuses);
  return {!ended.which->empty(), ended.which};
}

void record_wait(const Call& call, std::span<const MPI_Request> before, const Ended& ended) {
  guarded([&] {
    if (!ended.complete) return log.wait(call, {}, false);
    if (!ended.which) return log.wait(call, before, true);
    std::vector<MPI_Request> done;
    for (const int i : *ended.which) {
      if (i >= 0 && static_cast<size_t>(i) < before.size()) done.push_back(before[static_cast<size_t>(i)]);
    }
    log.wait(call, done, true);
  });
}

template <auto function, auto ended>
struct RecordedWait;
template <typename... Rest, int (*Native::*function)(MPI_Request*, Rest...), auto ended>
struct RecordedWait<function, ended> {
  static int call(MPI_Request* request, Rest... rest) {
    if (passes()) return (next.*function)(request, rest...);
    const MPI_Request before = *request;
    OFFPATH_CALL(called<function>);
    const int code = (next.*function)(request, rest...);
    record_wait(call, {&before, 1}, ended(code, rest...));
    return code;
  }
};
template <typename... Rest, int (*Native::*function)(int, MPI_Request*, Rest...), auto ended>
struct RecordedWait<function, ended> {
  static int call(int count, MPI_Request* requests, Rest... rest) {
    if (passes()) return (next.*function)(count, requests, rest...);
    std::vector<MPI_Request> before;
    guarded([&] { before.assign(requests, requests + std::max(count, 0)); });
    OFFPATH_CALL(called<function>);
    const int code = (next.*function)(count, requests, rest...);
    record_wait(call, before, ended(code, rest...));
    return code;
  }
};

int start(MPI_Request* request, const char* name, const void* site) {
  Ticket ticket;
  guarded([&] { ticket = log.choose_persistent(*request, site); });
  const Posting posting(ticket.operation);
  const Call call{name, ticket.recorded() ? log.since_start_ns() : 0, site};
  const int code = next.Start(request);
  guarded([&] { log.post_persistent(call, ticket, *request); });
  return code;
}

int Start(MPI_Request* request) {
  if (passes()) return next.Start(request);
  return start(request, called<&Native::Start>, log.callers.of(__builtin_return_address(0)));
}

// One by one, so that each operation has its number.
int Startall(int count, MPI_Request* requests) {
  if (passes()) return next.Startall(count, requests);
  const void* const site = log.callers.of(__builtin_return_address(0));
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = start(&requests[i], called<&Native::Startall>, site);
  return code;
}

}  // namespace

void set_waiting(void** handlers) {
#define OFFPATH_SET(name, ours) handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&ours)
#define OFFPATH_RECORD(name, ended) \
  handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&RecordedWait<&Native::name, &ended>::call)
  OFFPATH_RECORD(Wait, all);
  OFFPATH_RECORD(Waitall, all);
  OFFPATH_RECORD(Waitany, any);
  OFFPATH_RECORD(Waitsome, some);
  OFFPATH_RECORD(Test, all_if);
  OFFPATH_RECORD(Testall, all_if);
  OFFPATH_RECORD(Testany, any_if);
  OFFPATH_RECORD(Testsome, some_if);
  OFFPATH_SET(Start, Start);
  OFFPATH_SET(Startall, Startall);
#undef OFFPATH_RECORD
#undef OFFPATH_SET
}

}  // namespace offpath::mpi::recording
