// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/completion.hpp"

#include "mpi/job/waiting.hpp"
#include "mpi/messages/group.hpp"
#include "mpi/messages/rounds.hpp"

#include <algorithm>

namespace offpath::mpi {

Native beneath;

namespace {

// A request that the application has freed, while the library's is still there.
struct Freed {
  MPI_Request request;
  TrackedRef tracked;
};
std::mutex freed_mutex;
std::vector<Freed> freed;
std::atomic<size_t> freed_count{0};

bool none_of_ours() {
  if (freed_count.load(std::memory_order_relaxed) != 0) finish_freed();
  return tracked.empty();
}

void set_error(MPI_Status* status, int code) {
  if (status != MPI_STATUS_IGNORE) status->MPI_ERROR = code;
}

// The application's statuses, or ours where it wants none.
class Statuses {
 public:
  Statuses(MPI_Status* given, int count) : given_(given) {
    if (given == MPI_STATUSES_IGNORE) own_.resize(static_cast<size_t>(std::max(count, 1)));
  }
  MPI_Status* get() { return given_ == MPI_STATUSES_IGNORE ? own_.data() : given_; }

 private:
  MPI_Status* given_;
  std::vector<MPI_Status> own_;
};

MPI_Status* choose(MPI_Status* given, MPI_Status* own) { return given == MPI_STATUS_IGNORE ? own : given; }

// ---- one

// After the library has completed the one at `index` with `code`.
int finish_one(Group& group, int code, int index, MPI_Status* status) {
  if (index == MPI_UNDEFINED) return code;
  if (code != MPI_SUCCESS) {
    group.drop(index);
    return code;
  }
  const int ours = group.finish(index, status);
  if (ours == MPI_SUCCESS) return code;
  set_error(status, ours);
  return group.raise(index, ours);
}

int wait(MPI_Request* request, MPI_Status* given) {
  if (none_of_ours()) return beneath.Wait(request, given);
  Group group(1, request);
  if (group.empty()) return beneath.Wait(request, given);
  MPI_Status own;
  MPI_Status* const status = choose(given, &own);
  group.before_all();
  return finish_one(group, beneath.Wait(group.hand_over(), status), 0, status);
}

int test(MPI_Request* request, int* flag, MPI_Status* given) {
  if (none_of_ours()) return beneath.Test(request, flag, given);
  Group group(1, request);
  if (group.empty()) return beneath.Test(request, flag, given);
  if (!group.all_ready()) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  MPI_Status own;
  MPI_Status* const status = choose(given, &own);
  const int code = beneath.Test(group.hand_over(), flag, status);
  return code == MPI_SUCCESS && *flag == 0 ? code : finish_one(group, code, 0, status);
}

int get_status(MPI_Request request, int* flag, MPI_Status* given) {
  if (none_of_ours()) return beneath.Request_get_status(request, flag, given);
  const TrackedRef found = request == MPI_REQUEST_NULL ? nullptr : tracked.find(request);
  if (found == nullptr) return beneath.Request_get_status(request, flag, given);
  const MPI_Request used = found->stands != MPI_REQUEST_NULL ? found->stands : request;
  if (!found->ready(used)) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  const int code = beneath.Request_get_status(used, flag, given);
  if (code == MPI_SUCCESS && *flag != 0 && given != MPI_STATUS_IGNORE) found->show(given);
  return code;
}

// ---- all

// After the library has completed all: the failures of ours, with `code` of its own.
int finish_all(Group& group, int count, int code, MPI_Status* statuses) {
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  int first = -1;
  for (int i = 0; i < count; ++i) {
    if (code == MPI_ERR_IN_STATUS && statuses[i].MPI_ERROR != MPI_SUCCESS) {
      if (statuses[i].MPI_ERROR != MPI_ERR_PENDING) group.drop(i);
      continue;
    }
    const int ours = group.finish(i, &statuses[i]);
    if (ours != MPI_SUCCESS && first < 0 && code == MPI_SUCCESS) {
      for (int each = 0; each < count; ++each) statuses[each].MPI_ERROR = MPI_SUCCESS;
    }
    if (ours != MPI_SUCCESS) statuses[i].MPI_ERROR = ours;
    if (ours != MPI_SUCCESS && first < 0) first = i;
  }
  if (first < 0 || code != MPI_SUCCESS) return code;
  return group.raise(first, MPI_ERR_IN_STATUS);
}

int wait_all(int count, MPI_Request* requests, MPI_Status* given) {
  if (none_of_ours()) return beneath.Waitall(count, requests, given);
  Group group(count, requests);
  if (group.empty()) return beneath.Waitall(count, requests, given);
  Statuses statuses(given, count);
  group.before_all();
  const int code = beneath.Waitall(count, group.hand_over(), statuses.get());
  return finish_all(group, count, code, statuses.get());
}

int test_all(int count, MPI_Request* requests, int* flag, MPI_Status* given) {
  if (none_of_ours()) return beneath.Testall(count, requests, flag, given);
  Group group(count, requests);
  if (group.empty()) return beneath.Testall(count, requests, flag, given);
  if (!group.all_ready()) {
    *flag = 0;
    return MPI_SUCCESS;
  }
  Statuses statuses(given, count);
  const int code = beneath.Testall(count, group.hand_over(), flag, statuses.get());
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return finish_all(group, count, code, statuses.get());
}

// ---- some. `hidden`: requests that the library does not see now.

int test_any(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* given) {
  if (none_of_ours()) return beneath.Testany(count, requests, index, flag, given);
  Group group(count, requests);
  if (group.empty()) return beneath.Testany(count, requests, index, flag, given);
  MPI_Status own;
  MPI_Status* const status = choose(given, &own);
  const int hidden = group.hide_unready();
  const int code = beneath.Testany(count, group.hand_over(), index, flag, status);
  if (code == MPI_SUCCESS && *flag != 0 && *index == MPI_UNDEFINED && hidden > 0) *flag = 0;
  if (code == MPI_SUCCESS && *flag == 0) return code;
  return finish_one(group, code, *index, status);
}

int test_some(int count, MPI_Request* requests, int* out_count, int* indices, MPI_Status* given) {
  if (none_of_ours()) return beneath.Testsome(count, requests, out_count, indices, given);
  Group group(count, requests);
  if (group.empty()) return beneath.Testsome(count, requests, out_count, indices, given);
  Statuses statuses(given, count);
  MPI_Status* const all = statuses.get();
  const int hidden = group.hide_unready();
  const int code = beneath.Testsome(count, group.hand_over(), out_count, indices, all);
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) return code;
  if (*out_count == MPI_UNDEFINED) {
    if (hidden > 0) *out_count = 0;
    return code;
  }
  int first = -1;
  for (int i = 0; i < *out_count; ++i) {
    if (code == MPI_ERR_IN_STATUS && all[i].MPI_ERROR != MPI_SUCCESS) {
      group.drop(indices[i]);
      continue;
    }
    const int ours = group.finish(indices[i], &all[i]);
    if (ours == MPI_SUCCESS) continue;
    for (int each = 0; first < 0 && code == MPI_SUCCESS && each < *out_count; ++each) all[each].MPI_ERROR = MPI_SUCCESS;
    all[i].MPI_ERROR = ours;
    if (first < 0) first = indices[i];
  }
  return first < 0 || code != MPI_SUCCESS ? code : group.raise(first, MPI_ERR_IN_STATUS);
}

// Between two looks at several requests, of which some are ours.
void pause(Waiter& waiter, int count, MPI_Request* requests) {
  move_on();
  if (Group(count, requests).any_at_service())
    waiter.pause();
  else
    waiter.poll();
}

bool concerns_us(int count, MPI_Request* requests) { return !none_of_ours() && !Group(count, requests).empty(); }

int wait_any(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  if (!concerns_us(count, requests)) return beneath.Waitany(count, requests, index, status);
  Waiter waiter;
  for (;; pause(waiter, count, requests)) {
    int done = 0;
    const int code = test_any(count, requests, index, &done, status);
    if (code != MPI_SUCCESS || done != 0) return code;
  }
}

int wait_some(int count, MPI_Request* requests, int* out_count, int* indices, MPI_Status* statuses) {
  if (!concerns_us(count, requests)) return beneath.Waitsome(count, requests, out_count, indices, statuses);
  Waiter waiter;
  for (;; pause(waiter, count, requests)) {
    const int code = test_some(count, requests, out_count, indices, statuses);
    if (code != MPI_SUCCESS || *out_count != 0) return code;
  }
}

// ---- freeing and starting

int free_request(MPI_Request* request) {
  const TrackedRef found = none_of_ours() || request == nullptr ? nullptr : tracked.find_any(*request);
  if (found == nullptr) return beneath.Request_free(request);
  tracked.remove(*request);
  if (!found->active) return beneath.Request_free(request);
  // The library's request is kept until it is complete, and then completed; what stands for a persistent one, too.
  if (found->stands != MPI_REQUEST_NULL) {
    std::lock_guard lock(freed_mutex);
    freed.push_back({found->stands, found});
    freed_count.store(freed.size(), std::memory_order_relaxed);
    return beneath.Request_free(request);
  }
  std::lock_guard lock(freed_mutex);
  freed.push_back({*request, found});
  freed_count.store(freed.size(), std::memory_order_relaxed);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int start(MPI_Request* request) {
  const TrackedRef found = request == nullptr ? nullptr : tracked.find_any(*request);
  if (found == nullptr || found->active) return beneath.Start(request);  // the library knows what to say of the latter
  return found->start(request);
}

// One by one where any is ours: each has its place in the order of messages.
int start_all(int count, MPI_Request* requests) {
  if (none_of_ours()) return beneath.Startall(count, requests);
  int code = MPI_SUCCESS;
  for (int i = 0; i < count && code == MPI_SUCCESS; ++i) code = start(&requests[i]);
  return code;
}

// Handlers throw nothing.
template <auto* function, typename... Arguments>
int guarded(Arguments... arguments) {
  try {
    return (*function)(arguments...);
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}
template <auto* function, typename... Arguments>
auto* guard(int (*)(Arguments...)) {
  return &guarded<function, Arguments...>;
}

}  // namespace

bool finish_freed() {
  std::vector<Freed> complete;
  {
    std::lock_guard lock(freed_mutex);
    std::erase_if(freed, [&](const Freed& one) {
      const bool ready = one.tracked->ready(one.request);
      if (ready) complete.push_back(one);
      return ready;
    });
    freed_count.store(freed.size(), std::memory_order_relaxed);
  }
  for (Freed& one : complete) {
    MPI_Status status;
    int code = beneath.Wait(&one.request, &status);
    if (code == MPI_SUCCESS) code = one.tracked->after(&status);
    if (one.tracked->persistent && one.request != MPI_REQUEST_NULL) beneath.Request_free(&one.request);
    if (code != MPI_SUCCESS) one.tracked->raise(code);
  }
  std::lock_guard lock(freed_mutex);
  return std::none_of(freed.begin(), freed.end(), [](const Freed& one) { return one.tracked->at_service(); });
}

void watch_completions() {
  beneath = native;
  native.Wait = guard<&wait>(&wait);
  native.Waitall = guard<&wait_all>(&wait_all);
  native.Waitany = guard<&wait_any>(&wait_any);
  native.Waitsome = guard<&wait_some>(&wait_some);
  native.Test = guard<&test>(&test);
  native.Testall = guard<&test_all>(&test_all);
  native.Testany = guard<&test_any>(&test_any);
  native.Testsome = guard<&test_some>(&test_some);
  native.Request_get_status = guard<&get_status>(&get_status);
  native.Request_free = guard<&free_request>(&free_request);
  native.Start = guard<&start>(&start);
  native.Startall = guard<&start_all>(&start_all);
}

}  // namespace offpath::mpi
