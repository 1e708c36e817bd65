// SPDX-License-Identifier: BSD-3-Clause
// Waiting, testing, and starting persistent operations.
#include "recording/handlers.hpp"

#include <span>

namespace offpath::mpi::recording {
namespace {

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
}

}  // namespace offpath::mpi::recording
