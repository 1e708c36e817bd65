// SPDX-License-Identifier: BSD-3-Clause
// MPI_Wait, MPI_Test and their kin.
#include "mpi/device/requests.hpp"

#include <algorithm>
#include <ctime>
#include <new>

namespace offpath::regions {
namespace {

Handles<MPI_Request, Request> requests;

// What several requests are watched with: naps that grow, as the host process that serves them may need this core.
class Watch {
 public:
  void pause() {
    constexpr long kLongestNs = 50'000;
    const timespec nap{0, nap_ns_};
    nanosleep(&nap, nullptr);
    nap_ns_ = std::min(2 * nap_ns_, kLongestNs);
  }

 private:
  long nap_ns_ = 2'000;
};

// The request has ended: takes it away.
int retire(const std::shared_ptr<Request>& held, MPI_Request* request, MPI_Status* status) {
  const int code = held->upcall.wait();
  fill_status(held->upcall.result(), status);
  if (!held->receives) fill_empty_status(status);
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
  requests.remove(*request);
  *request = MPI_REQUEST_NULL;
  return code;
}

int wait(MPI_Request* request, MPI_Status* status) {
  fill_empty_status(status);
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  const auto held = requests.find(*request);
  return held == nullptr ? MPI_ERR_REQUEST : retire(held, request, status);
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
  *flag = 1;
  fill_empty_status(status);
  if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
  const auto held = requests.find(*request);
  if (held == nullptr) return MPI_ERR_REQUEST;
  *flag = held->upcall.test() ? 1 : 0;
  return *flag == 0 ? MPI_SUCCESS : retire(held, request, status);
}

MPI_Status* status_at(MPI_Status* statuses, int i) {
  return statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i];
}

// Retires what has ended: up to `most` of the requests; their places go to `indices`. *active: how many were not null.
int reap(int count, MPI_Request* request, int most, int* found, int* indices, MPI_Status* statuses, int* active) {
  int code = MPI_SUCCESS;
  *found = 0;
  *active = 0;
  for (int i = 0; i < count && *found < most; ++i) {
    if (request[i] == MPI_REQUEST_NULL) continue;
    ++*active;
    int flag = 0;
    const int own = test(&request[i], &flag, status_at(statuses, *found));
    if (flag == 0) continue;
    indices[(*found)++] = i;
    if (own != MPI_SUCCESS) code = most == 1 ? own : MPI_ERR_IN_STATUS;
  }
  return code;
}

}  // namespace

int start(const Arguments& arguments, bool receives, Buffer input, Buffer output, MPI_Request* request) {
  const auto made = std::shared_ptr<Request>(new (std::nothrow) Request);
  if (made == nullptr) return MPI_ERR_NO_MEM;
  made->receives = receives;
  const int code = made->upcall.post(arguments, input, output);
  if (code != MPI_SUCCESS) return code;
  return requests.add(made, request) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

void fill_status(const Result& result, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  status->MPI_SOURCE = result.source;
  status->MPI_TAG = result.tag;
#ifdef OPEN_MPI
  status->_cancelled = 0;
  status->_ucount = result.bytes;
#else
  status->count_lo = static_cast<int>(static_cast<uint32_t>(result.bytes));
  status->count_hi_and_cancelled = static_cast<int>(static_cast<uint32_t>(result.bytes >> 32) << 1);
#endif
}

void fill_empty_status(MPI_Status* status) {
  Result nothing{};
  nothing.source = MPI_ANY_SOURCE;
  nothing.tag = MPI_ANY_TAG;
  fill_status(nothing, status);
}

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) { return wait(request, status); }

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) { return test(request, flag, status); }

int MPI_Waitall(int count, MPI_Request request[], MPI_Status statuses[]) {
  int code = MPI_SUCCESS;
  for (int i = 0; i < count; ++i) {
    if (wait(&request[i], status_at(statuses, i)) != MPI_SUCCESS) code = MPI_ERR_IN_STATUS;
  }
  return code;
}

int MPI_Testall(int count, MPI_Request request[], int* flag, MPI_Status statuses[]) {
  *flag = 0;
  for (int i = 0; i < count; ++i) {
    if (request[i] == MPI_REQUEST_NULL) continue;
    const auto held = requests.find(request[i]);
    if (held == nullptr) return MPI_ERR_REQUEST;
    if (!held->upcall.test()) return MPI_SUCCESS;
  }
  *flag = 1;
  return MPI_Waitall(count, request, statuses);
}

int MPI_Testany(int count, MPI_Request request[], int* index, int* flag, MPI_Status* status) {
  int found = 0;
  int active = 0;
  fill_empty_status(status);
  const int code = reap(count, request, 1, &found, index, status, &active);
  *flag = found != 0 || active == 0 ? 1 : 0;
  if (found == 0) *index = MPI_UNDEFINED;
  return code;
}

int MPI_Waitany(int count, MPI_Request request[], int* index, MPI_Status* status) {
  Watch watch;
  for (;; watch.pause()) {
    int flag = 0;
    const int code = MPI_Testany(count, request, index, &flag, status);
    if (flag != 0 || code != MPI_SUCCESS) return code;
  }
}

int MPI_Testsome(int count, MPI_Request request[], int* found, int indices[], MPI_Status statuses[]) {
  int active = 0;
  const int code = reap(count, request, count, found, indices, statuses, &active);
  if (active == 0) *found = MPI_UNDEFINED;
  return code;
}

int MPI_Waitsome(int count, MPI_Request request[], int* found, int indices[], MPI_Status statuses[]) {
  Watch watch;
  for (;; watch.pause()) {
    const int code = MPI_Testsome(count, request, found, indices, statuses);
    if (*found != 0 || code != MPI_SUCCESS) return code;
  }
}

int MPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) {
  const NamedType* const found = find_type(type_name(type));
  if (found == nullptr) return MPI_ERR_TYPE;
#ifdef OPEN_MPI
  const uint64_t bytes = status->_ucount;
#else
  const uint64_t bytes = static_cast<uint32_t>(status->count_lo) |
                         static_cast<uint64_t>(static_cast<uint32_t>(status->count_hi_and_cancelled) >> 1) << 32;
#endif
  *count = bytes % found->bytes == 0 ? static_cast<int>(bytes / found->bytes) : MPI_UNDEFINED;
  return MPI_SUCCESS;
}

}  // extern "C"
}  // namespace offpath::regions
