// SPDX-License-Identifier: BSD-3-Clause
// Each first moves ours on, waits for those it has to, and leaves the rest to the native function: what we promise is a
// generalized request, known to it; what it is not to complete yet it does not see; and those that stand for persistent
// ones are exchanged around the call. A failed operation is reported after it, in the way MPI prescribes for that function.
#include "mpi/requests/completion.hpp"

#include "mpi/requests/handling.hpp"
#include "mpi/requests/own_requests.hpp"

#include <algorithm>
#include <mutex>

namespace offpath::mpi {
namespace {

// A request that the application has freed, while the library's is still there.
struct Freed {
  MPI_Request request;
  Held requested;
};
std::mutex freed_mutex;
std::vector<Freed> freed;
std::atomic<size_t> freed_count{0};

// The application's statuses, or ours where it wants none and we have to see them.
class Statuses {
 public:
  Statuses(MPI_Status* given, int count, const OwnRequests& own) : given_(given) {
    if (given == MPI_STATUSES_IGNORE && own.change_statuses()) own_.resize(static_cast<size_t>(std::max(count, 1)));
  }
  MPI_Status* get() { return own_.empty() ? given_ : own_.data(); }

 private:
  MPI_Status* given_;
  std::vector<MPI_Status> own_;
};

// After the library has completed the one at `index` with `code`.
int finish_one(OwnRequests& own, int code, int index, MPI_Status* status) {
  if (index == MPI_UNDEFINED) return code;
  if (code != MPI_SUCCESS) return own.drop(index) ? code : own.raise(index, code);
  const int failed = own.finish(index, status);
  if (failed == MPI_SUCCESS) return code;
  status->MPI_ERROR = failed;
  return own.raise(index, failed);
}

// After the library has completed so many: the failures of ours, with `code` of its own. `indices`: null for the first
// ones.
int finish_several(OwnRequests& own, int code, int count, const int* indices, MPI_Status* statuses) {
  if (code == MPI_SUCCESS && own.nothing_to_say()) return code;
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  const bool told = statuses != MPI_STATUSES_IGNORE;
  bool handled = false;  // once, as the library does
  int first = -1;
  for (int i = 0; i < count; ++i) {
    const int index = indices == nullptr ? i : indices[i];
    MPI_Status* const status = told ? &statuses[i] : MPI_STATUS_IGNORE;
    if (code == MPI_ERR_IN_STATUS && told && status->MPI_ERROR != MPI_SUCCESS) {
      if (status->MPI_ERROR == MPI_ERR_PENDING) continue;
      if (!own.drop(index) && !handled) own.raise(index, status->MPI_ERROR);
      handled = true;
      continue;
    }
    const int failed = own.finish(index, status);
    if (failed == MPI_SUCCESS) continue;
    for (int each = 0; told && first < 0 && code == MPI_SUCCESS && each < count; ++each) {
      statuses[each].MPI_ERROR = MPI_SUCCESS;
    }
    if (told) status->MPI_ERROR = failed;
    if (first < 0) first = index;
  }
  return first < 0 || code != MPI_SUCCESS ? code : own.raise(first, MPI_ERR_IN_STATUS);
}

// ---- one and all

int wait(MPI_Request* request, MPI_Status* given) {
  OwnRequests own(1, request);
  MPI_Status seen;
  MPI_Status* const status = status_or(given, &seen);
  own.await();
  return finish_one(own, native.Wait(own.hand_over(), status), 0, status);
}

int wait_all(int count, MPI_Request* requests, MPI_Status* given) {
  OwnRequests own(count, requests);
  Statuses statuses(given, count, own);
  own.await();
  const int code = native.Waitall(count, own.hand_over(), statuses.get());
  return finish_several(own, code, count, nullptr, statuses.get());
}

int test(MPI_Request* request, int* flag, MPI_Status* given) {
  OwnRequests own(1, request);
  move_ours();
  *flag = 0;
  if (own.hide() != 0) return MPI_SUCCESS;
  MPI_Status seen;
  MPI_Status* const status = status_or(given, &seen);
  const int code = native.Test(own.hand_over(), flag, status);
  return code == MPI_SUCCESS && *flag == 0 ? code : finish_one(own, code, 0, status);
}

int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* given) {
  OwnRequests own(count, requests);
  move_ours();
  *flag = 0;
  if (own.hide() != 0) return MPI_SUCCESS;
  Statuses statuses(given, count, own);
  const int code = native.Testall(count, own.hand_over(), flag, statuses.get());
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return finish_several(own, code, count, nullptr, statuses.get());
}

// ---- some

int any(OwnRequests& own, int count, int* index, int* flag, MPI_Status* given) {
  MPI_Status seen;
  MPI_Status* const status = status_or(given, &seen);
  const int hidden = own.hide();
  const int code = native.Testany(count, own.hand_over(), index, flag, status);
  if (code == MPI_SUCCESS && *flag != 0 && *index == MPI_UNDEFINED && hidden > 0) *flag = 0;
  return code == MPI_SUCCESS && *flag == 0 ? code : finish_one(own, code, *index, status);
}

int some(OwnRequests& own, int count, int* out_count, int* indices, MPI_Status* given) {
  Statuses statuses(given, count, own);
  const int hidden = own.hide();
  const int code = native.Testsome(count, own.hand_over(), out_count, indices, statuses.get());
  if (code == MPI_SUCCESS && *out_count == MPI_UNDEFINED && hidden > 0) *out_count = 0;
  return finish_several(own, code, *out_count == MPI_UNDEFINED ? 0 : *out_count, indices, statuses.get());
}

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  OwnRequests own(count, requests);
  move_ours();
  return any(own, count, index, flag, status);
}

int test_some(int count, MPI_Request* requests, int* out_count, int* indices, MPI_Status* statuses) {
  OwnRequests own(count, requests);
  move_ours();
  return some(own, count, out_count, indices, statuses);
}

int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  OwnRequests own(count, requests);
  move_ours();
  if (own.empty()) return native.Waitany(count, own.natives(), index, status);
  const WaitTimer timer;
  for (Waiter waiter(own.beside());; own.pause(waiter), move_freed(), move_ours()) {
    int done = 0;
    const int code = any(own, count, index, &done, status);
    if (code != MPI_SUCCESS || done != 0) return code;
  }
}

int wait_some(int count, MPI_Request* requests, int* out_count, int* indices, MPI_Status* statuses) {
  OwnRequests own(count, requests);
  move_ours();
  if (own.empty()) return native.Waitsome(count, own.natives(), out_count, indices, statuses);
  const WaitTimer timer;
  for (Waiter waiter(own.beside());; own.pause(waiter), move_freed(), move_ours()) {
    const int code = some(own, count, out_count, indices, statuses);
    if (code != MPI_SUCCESS || *out_count != 0) return code;
  }
}

// ---- starting, freeing, cancelling

int start(MPI_Request* request) { return standings.start(request); }
int start_all(int count, MPI_Request* requests) { return standings.start_all(count, requests); }

// What we promise goes on: a later call of these functions, or MPI_Finalize, completes it. The library's own is kept until
// it is complete, and then completed.
int free_one(MPI_Request* request) {
  Requested* const found = request == nullptr ? nullptr : offloader.find(*request);
  if (found == nullptr || found->is_generalized()) return native.Request_free(request);
  std::lock_guard lock(freed_mutex);
  freed.push_back({*request, Held(*found)});
  freed_count.store(freed.size(), std::memory_order_relaxed);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int free_request(MPI_Request* request) {
  move_ours();
  const std::unique_ptr<Standing> standing = request == nullptr ? nullptr : standings.take(*request);
  if (standing == nullptr || standing->current == *request) return free_one(request);
  if (standing->current != MPI_REQUEST_NULL) free_one(&standing->current);
  return native.Request_free(request);
}

int cancel(MPI_Request* request) {
  Standing* const standing = request == nullptr ? nullptr : standings.find(*request);
  const bool exchanged = standing != nullptr && standing->current != MPI_REQUEST_NULL;
  return native.Cancel(exchanged ? &standing->current : request);
}

}  // namespace

void move_freed() {
  if (freed_count.load(std::memory_order_relaxed) != 0) finish_freed();
}

bool finish_freed() {
  std::vector<Freed> over;
  {
    std::lock_guard lock(freed_mutex);
    std::erase_if(freed, [&](Freed& one) {
      const bool is_over = one.requested->over(one.request);
      if (is_over) over.push_back(std::move(one));
      return is_over;
    });
    freed_count.store(freed.size(), std::memory_order_relaxed);
  }
  for (Freed& one : over) {
    MPI_Status status;
    offloader.forget(one.request, *one.requested);
    int code = native.Wait(&one.request, &status);
    if (code == MPI_SUCCESS)
      code = one.requested->end(&status);
    else
      one.requested->drop();
    if (one.request != MPI_REQUEST_NULL) native.Request_free(&one.request);  // a persistent one
    if (code != MPI_SUCCESS) one.requested->raise(code);
  }
  std::lock_guard lock(freed_mutex);
  return std::none_of(freed.begin(), freed.end(), [](const Freed& one) { return one.requested->at_service(); });
}

namespace handlers {

OFFPATH_WAITS(Wait, wait)
OFFPATH_WAITS(Waitall, wait_all)
OFFPATH_WAITS(Waitany, wait_any)
OFFPATH_WAITS(Waitsome, wait_some)
OFFPATH_WAITS(Test, test)
OFFPATH_WAITS(Testall, test_all)
OFFPATH_WAITS(Testany, test_any)
OFFPATH_WAITS(Testsome, test_some)
OFFPATH_WAITS(Request_free, free_request)
OFFPATH_HANDLES(Start, start)
OFFPATH_HANDLES(Startall, start_all)
OFFPATH_HANDLES(Cancel, cancel)

}  // namespace handlers
}  // namespace offpath::mpi
