// SPDX-License-Identifier: BSD-3-Clause
// The Wait and Test families. Each first moves our operations on, waits for those it has to (native progress goes on
// meanwhile), and leaves the rest to the native function: our requests are generalized requests, known to it, and those
// that stand for persistent ones are exchanged around the call. A failed operation is reported after it, in the way MPI
// prescribes for that function.
#include "mpi/job/counters.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/native.hpp"
#include "mpi/requests/own_requests.hpp"

namespace offpath::mpi {
namespace {

// Nothing of ours anywhere: a few loads, then the native function.
bool nothing_to_do() {
  counters.count_wait();
  return (!offloader.needs_attention() && persistents.empty()) || Inside::here();
}

void pause(Waiter& waiter, const OwnRequests& own) {
  if (own.any_at_service())
    waiter.pause();
  else
    waiter.poll();
}

void wait_for(const OwnRequests& own, Beside beside) {
  if (own.all_finished()) return;
  const WaitTimer timer;
  Waiter waiter(beside);
  for (;;) {
    offloader.progress();
    if (own.all_finished()) return;
    pause(waiter, own);
  }
}

void set_error(MPI_Status* status, int code) {
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
}

// For the functions that complete one request.
int report_one(int code, const Requested* failed, MPI_Status* status) {
  if (code != MPI_SUCCESS || failed == nullptr) return code;
  set_error(status, failed->error);
  return failed->raise(failed->error);
}

// For the functions that complete several: statuses say which of them failed.
int report_all(int code, const OwnRequests& own, int count, MPI_Status* statuses) {
  const Requested* first = own.any_failed();
  if (code != MPI_SUCCESS || first == nullptr) return code;
  for (int index = 0; statuses != MPI_STATUSES_IGNORE && index < count; ++index) {
    const Requested* failed = own.failed_at(index);
    statuses[index].MPI_ERROR = failed == nullptr ? MPI_SUCCESS : failed->error;
  }
  return first->raise(MPI_ERR_IN_STATUS);
}

int report_some(int code, const OwnRequests& own, const int* out_count, const int* indices, MPI_Status* statuses) {
  if (code != MPI_SUCCESS || *out_count == MPI_UNDEFINED) return code;
  const Requested* first = nullptr;
  for (int i = 0; i < *out_count && first == nullptr; ++i) first = own.failed_at(indices[i]);
  if (first == nullptr) return code;
  for (int i = 0; statuses != MPI_STATUSES_IGNORE && i < *out_count; ++i) {
    const Requested* failed = own.failed_at(indices[i]);
    statuses[i].MPI_ERROR = failed == nullptr ? MPI_SUCCESS : failed->error;
  }
  return first->raise(MPI_ERR_IN_STATUS);
}

Beside beside_of(const OwnRequests& own, int count) {
  return own.only_ours(count) ? Beside::nothing : Beside::native_requests;
}

}  // namespace

namespace handlers {

int Wait(MPI_Request* request, MPI_Status* status) {
  if (nothing_to_do()) return native.Wait(request, status);
  OwnRequests own(1, request);
  if (own.empty())
    offloader.progress();
  else
    wait_for(own, Beside::nothing);
  return report_one(own.settle(native.Wait(own.natives(), status)), own.failed_at(0), status);
}

int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  if (nothing_to_do()) return native.Waitall(count, requests, statuses);
  OwnRequests own(count, requests);
  if (own.empty())
    offloader.progress();
  else
    wait_for(own, beside_of(own, count));
  return report_all(own.settle(native.Waitall(count, own.natives(), statuses)), own, count, statuses);
}

int Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  if (nothing_to_do()) return native.Waitany(count, requests, index, status);
  OwnRequests own(count, requests);
  offloader.progress();
  if (own.empty()) return own.settle(native.Waitany(count, own.natives(), index, status));
  const WaitTimer timer;
  Waiter waiter(beside_of(own, count));
  for (;;) {
    int done = 0;
    const int code = own.settle(native.Testany(count, own.natives(), index, &done, status));
    if (code != MPI_SUCCESS || done != 0) {
      return report_one(code, code == MPI_SUCCESS && *index != MPI_UNDEFINED ? own.failed_at(*index) : nullptr, status);
    }
    pause(waiter, own);
    offloader.progress();
  }
}

int Waitsome(int count, MPI_Request requests[], int* out_count, int indices[], MPI_Status statuses[]) {
  if (nothing_to_do()) return native.Waitsome(count, requests, out_count, indices, statuses);
  OwnRequests own(count, requests);
  offloader.progress();
  if (own.empty()) return own.settle(native.Waitsome(count, own.natives(), out_count, indices, statuses));
  const WaitTimer timer;
  Waiter waiter(beside_of(own, count));
  for (;;) {
    const int code = own.settle(native.Testsome(count, own.natives(), out_count, indices, statuses));
    if (code != MPI_SUCCESS || *out_count != 0) return report_some(code, own, out_count, indices, statuses);
    pause(waiter, own);
    offloader.progress();
  }
}

int Test(MPI_Request* request, int* flag, MPI_Status* status) {
  if (nothing_to_do()) return native.Test(request, flag, status);
  OwnRequests own(1, request);
  offloader.progress();
  const int code = own.settle(native.Test(own.natives(), flag, status));
  return code == MPI_SUCCESS && *flag != 0 ? report_one(code, own.failed_at(0), status) : code;
}

int Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]) {
  if (nothing_to_do()) return native.Testall(count, requests, flag, statuses);
  OwnRequests own(count, requests);
  offloader.progress();
  const int code = own.settle(native.Testall(count, own.natives(), flag, statuses));
  return code == MPI_SUCCESS && *flag != 0 ? report_all(code, own, count, statuses) : code;
}

int Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status) {
  if (nothing_to_do()) return native.Testany(count, requests, index, flag, status);
  OwnRequests own(count, requests);
  offloader.progress();
  const int code = own.settle(native.Testany(count, own.natives(), index, flag, status));
  if (code != MPI_SUCCESS || *flag == 0 || *index == MPI_UNDEFINED) return code;
  return report_one(code, own.failed_at(*index), status);
}

int Testsome(int count, MPI_Request requests[], int* out_count, int indices[], MPI_Status statuses[]) {
  if (nothing_to_do()) return native.Testsome(count, requests, out_count, indices, statuses);
  OwnRequests own(count, requests);
  offloader.progress();
  return report_some(own.settle(native.Testsome(count, own.natives(), out_count, indices, statuses)), own, out_count,
                     indices, statuses);
}

int Request_free(MPI_Request* request) {
  // The operation goes on; a later call of these functions, or MPI_Finalize, completes it.
  if (!nothing_to_do()) offloader.progress();
  Persistent* const persistent = request == nullptr ? nullptr : persistents.find(*request);
  if (persistent == nullptr) return native.Request_free(request);
  if (persistent->active()) native.Request_free(&persistent->current);
  persistent->lane->close();
  persistents.remove(*request);
  offloader.retire();
  return native.Request_free(request);
}

int Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  if (nothing_to_do()) return native.Request_get_status(request, flag, status);
  offloader.progress();
  OwnRequests own(1, &request);
  return native.Request_get_status(*own.natives(), flag, status);
}

}  // namespace handlers
}  // namespace offpath::mpi
