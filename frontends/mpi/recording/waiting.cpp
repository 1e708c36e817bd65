// SPDX-License-Identifier: BSD-3-Clause
// Waiting, testing, and starting persistent operations.
#include "mpi/recording/handlers.hpp"

#include <algorithm>
#include <span>

namespace offpath::mpi::recording {
namespace {

using Requests = std::vector<MPI_Request>;

Requests copy_of(const MPI_Request* requests, int count) {
  Requests copy;
  guarded([&] { copy.assign(requests, requests + std::max(count, 0)); });
  return copy;
}

void record_wait(const Call& call, std::span<const MPI_Request> done, bool complete = true) {
  guarded([&] { log.wait(call, done, complete); });
}

int Wait(MPI_Request* request, MPI_Status* status) {
  if (passes()) return next.Wait(request, status);
  const MPI_Request before = *request;
  OFFPATH_CALL(called<&Native::Wait>);
  const int code = next.Wait(request, status);
  record_wait(call, {&before, 1});
  return code;
}

int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (passes()) return next.Waitall(count, requests, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Waitall>);
  const int code = next.Waitall(count, requests, statuses);
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

void record_some(const Call& call, const Requests& before, std::span<const int> indices, bool complete = true) {
  guarded([&] { log.wait(call, chosen(before, indices), complete); });
}

// A call that failed may have left `done` as it was.
std::span<const int> found(int code, const int* indices, int done) {
  const bool known = code == MPI_SUCCESS || code == MPI_ERR_IN_STATUS;
  return {indices, known ? static_cast<size_t>(std::max(done, 0)) : 0};  // MPI_UNDEFINED is negative
}

int Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (passes()) return next.Waitany(count, requests, index, status);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Waitany>);
  const int code = next.Waitany(count, requests, index, status);
  record_some(call, before, {index, 1});
  return code;
}

int Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (passes()) return next.Waitsome(count, requests, done, indices, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Waitsome>);
  const int code = next.Waitsome(count, requests, done, indices, statuses);
  record_some(call, before, found(code, indices, *done));
  return code;
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (passes()) return next.Test(request, flag, status);
  const MPI_Request before = *request;
  OFFPATH_CALL(called<&Native::Test>);
  const int code = next.Test(request, flag, status);
  record_wait(call, {&before, *flag != 0 ? 1U : 0U}, *flag != 0);
  return code;
}

int Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  if (passes()) return next.Testall(count, requests, flag, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Testall>);
  const int code = next.Testall(count, requests, flag, statuses);
  record_wait(call, {before.data(), *flag != 0 ? before.size() : 0}, *flag != 0);
  return code;
}

int Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  if (passes()) return next.Testany(count, requests, index, flag, status);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Testany>);
  const int code = next.Testany(count, requests, index, flag, status);
  record_some(call, before, {index, *flag != 0 ? 1U : 0U}, *flag != 0);
  return code;
}

int Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  if (passes()) return next.Testsome(count, requests, done, indices, statuses);
  const Requests before = copy_of(requests, count);
  OFFPATH_CALL(called<&Native::Testsome>);
  const int code = next.Testsome(count, requests, done, indices, statuses);
  const std::span<const int> ended = found(code, indices, *done);
  record_some(call, before, ended, !ended.empty());
  return code;
}

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
  return start(request, called<&Native::Start>, callers.of(__builtin_return_address(0)));
}

// One by one, so that each operation has its number.
int Startall(int count, MPI_Request* requests) {
  if (passes()) return next.Startall(count, requests);
  const void* const site = callers.of(__builtin_return_address(0));
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = start(&requests[i], called<&Native::Startall>, site);
  return code;
}

}  // namespace

void set_waiting(void** handlers) {
#define OFFPATH_SET(name) handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&name)
  OFFPATH_SET(Wait);
  OFFPATH_SET(Waitall);
  OFFPATH_SET(Waitany);
  OFFPATH_SET(Waitsome);
  OFFPATH_SET(Test);
  OFFPATH_SET(Testall);
  OFFPATH_SET(Testany);
  OFFPATH_SET(Testsome);
  OFFPATH_SET(Start);
  OFFPATH_SET(Startall);
#undef OFFPATH_SET
}

}  // namespace offpath::mpi::recording
