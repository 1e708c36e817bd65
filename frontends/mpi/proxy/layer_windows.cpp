// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/layer_windows.hpp"

#include "mpi/functions/backend.h"
#include "mpi/native/handle_table.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/proxy/host_window.hpp"
#include "mpi/proxy/proxy.hpp"

#include <climits>
#include <cstring>
#include <exception>

namespace offpath::mpi::regions {
namespace {

class HostWindows {
 public:
  void add(MPI_Win win, std::shared_ptr<HostWindow> window) {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(handle_key(win), std::move(window));
  }
  std::shared_ptr<HostWindow> find(MPI_Win win) {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(handle_key(win));
    return entry == entries_.end() || Inside::here() ? nullptr : entry->second;
  }
  std::shared_ptr<HostWindow> remove(MPI_Win win) {
    auto window = find(win);
    std::lock_guard lock(mutex_);
    entries_.erase(handle_key(win));
    return window;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uintptr_t, std::shared_ptr<HostWindow>> entries_;
};

HostWindows host_windows;

void name(HostWindow& window, MPI_Info info) {
  const Crossing word = crossing_of(info);
  if (word == Crossing::unsaid) return;
  window.named = true;
  window.crosses = word == Crossing::on;
}

// A communicator for what the window's ranks settle. Collective.
MPI_Comm make_agreement(MPI_Comm comm) {
  const Meeting inside;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  if (native.Comm_group(comm, &group) != MPI_SUCCESS) return made;
  if (native.Comm_create(comm, group, &made) != MPI_SUCCESS) made = MPI_COMM_NULL;
  native.Group_free(&group);
  return made;
}

// After the window was made. Collective.
int adopt(int code, void* base, MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win win) {
  if (code != MPI_SUCCESS || !proxy.active() || Inside::here()) return code;
  try {
    const auto contexts = proxy.contexts().find(comm);
    if (contexts == nullptr) return code;
    const auto window = std::make_shared<HostWindow>();
    window->contexts = contexts;
    window->base = static_cast<std::byte*>(base);
    window->bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
    window->unit = unit;
    window->agreement = make_agreement(comm);
    name(*window, info);
    {
      std::lock_guard lock(contexts->mutex);
      window->number = contexts->host_windows.size();
      contexts->host_windows.push_back(window);
    }
    host_windows.add(win, window);
  } catch (const std::exception&) {
    return code;  // the other side cannot use it
  }
  return code;
}

int win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const int code = handlers::Win_create(base, bytes, unit, info, comm, win);
  return adopt(code, base, bytes, unit, info, comm, *win);
}

int win_allocate(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  const int code = handlers::Win_allocate(bytes, unit, info, comm, base, win);
  return adopt(code, code == MPI_SUCCESS ? *static_cast<void**>(base) : nullptr, bytes, unit, info, comm, *win);
}

int win_create_c(void* base, MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const int code = handlers::Win_create_c(base, bytes, unit, info, comm, win);
  return adopt(code, base, bytes, unit, info, comm, *win);
}

int win_allocate_c(MPI_Aint bytes, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  const int code = handlers::Win_allocate_c(bytes, unit, info, comm, base, win);
  return adopt(code, code == MPI_SUCCESS ? *static_cast<void**>(base) : nullptr, bytes, unit, info, comm, *win);
}

int win_set_info(MPI_Win win, MPI_Info info) {
  const auto window = host_windows.find(win);
  if (window != nullptr) name(*window, info);
  return window != nullptr && says_only_crossing(info) ? MPI_SUCCESS : native.Win_set_info(win, info);
}

int raised(MPI_Win win, int code) {
  if (code != MPI_SUCCESS) native.Win_call_errhandler(win, code);
  return code;
}

// Whether the fences of this window are both sides': some rank has named the key. The same on all ranks.
bool find_paired(HostWindow& window) {
  if (window.paired || window.agreement == MPI_COMM_NULL) return window.paired;
  const Meeting inside;
  const int mine = window.named ? 1 : 0;
  int all = 0;
  native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, window.agreement);
  window.paired = all != 0;
  return window.paired;
}

int win_fence(int assertion, MPI_Win win) {
  const auto window = host_windows.find(win);
  const int settled = window == nullptr ? MPI_SUCCESS : window->settle();
  int code = handlers::Win_fence(assertion, win);
  if (window == nullptr) return code;
  if (settled != MPI_SUCCESS) raised(win, settled);
  if (code == MPI_SUCCESS && find_paired(*window)) {
    window->begin();
    proxy.when_partner(
        window, [](RegionWindow& partner, const std::shared_ptr<HostWindow>& host) { partner.host_fence(host); });
    code = raised(win, window->settle());
  }
  return settled != MPI_SUCCESS ? settled : code;
}

int win_free(MPI_Win* win) {
  const auto window = win == nullptr ? nullptr : host_windows.remove(*win);
  if (window != nullptr) proxy.retire(window);
  return handlers::Win_free(win);
}

// 0: not a predefined type, which are the ones that cross over.
uint64_t bytes_of(int count, MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  int combiner = 0;
  MPI_Count bytes = 0;
  const Inside inside;
  if (native.Type_get_envelope(type, &integers, &addresses, &types, &combiner) != MPI_SUCCESS) return 0;
  if (combiner != MPI_COMBINER_NAMED || native.Type_size_x(type, &bytes) != MPI_SUCCESS || count < 0) return 0;
  return static_cast<uint64_t>(count) * static_cast<uint64_t>(bytes);
}

int transfer(bool puts, HostWindow& window, const std::shared_ptr<HostWindow>& held, void* data, int count,
             MPI_Datatype type, int target, MPI_Aint displacement, int target_count, MPI_Datatype target_type) {
  const uint64_t bytes = bytes_of(count, type);
  if (target == MPI_PROC_NULL || count == 0) return MPI_SUCCESS;
  if (bytes == 0 || bytes != bytes_of(target_count, target_type)) return MPI_ERR_TYPE;
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  if (target < 0 || target >= window.contexts->size) return MPI_ERR_RANK;
  if (displacement < 0) return MPI_ERR_DISP;
  window.begin();
  auto* const from = static_cast<std::byte*>(data);
  proxy.when_partner(held, [=](RegionWindow& partner, const std::shared_ptr<HostWindow>& host) {
    partner.start(std::make_unique<Outgoing>(puts, false, target, displacement, from, bytes,
                                             [host](int code) { host->end(code); }));
  });
  return MPI_SUCCESS;
}

int put(const void* data, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count,
        MPI_Datatype target_type, MPI_Win win) {
  const auto window = host_windows.find(win);
  if (window == nullptr || !window->crosses) {
    return handlers::Put(data, count, type, target, displacement, target_count, target_type, win);
  }
  return raised(win, transfer(true, *window, window, const_cast<void*>(data), count, type, target, displacement,
                              target_count, target_type));
}

int get(void* data, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count,
        MPI_Datatype target_type, MPI_Win win) {
  const auto window = host_windows.find(win);
  if (window == nullptr || !window->crosses) {
    return handlers::Get(data, count, type, target, displacement, target_count, target_type, win);
  }
  return raised(win,
                transfer(false, *window, window, data, count, type, target, displacement, target_count, target_type));
}

}  // namespace

Crossing crossing_of(MPI_Info info) {
  char value[8] = "";
  int given = 0;
  if (info == MPI_INFO_NULL) return Crossing::unsaid;
  const Inside inside;
  const int code = native.Info_get(info, offpath::regions::kCrossKey, sizeof(value) - 1, value, &given);
  if (code != MPI_SUCCESS || given == 0) return Crossing::unsaid;
  return strcmp(value, "1") == 0 ? Crossing::on : Crossing::off;
}

bool says_only_crossing(MPI_Info info) {
  if (crossing_of(info) == Crossing::unsaid) return false;
  int keys = 0;
  const Inside inside;
  return native.Info_get_nkeys(info, &keys) == MPI_SUCCESS && keys == 1;
}

void install_windows(void** table) {
  const auto set = [table](int function, auto* handler) { table[function] = reinterpret_cast<void*>(handler); };
  set(OFFPATH_FUNCTION_Win_create, &win_create);
  set(OFFPATH_FUNCTION_Win_allocate, &win_allocate);
  set(OFFPATH_FUNCTION_Win_create_c, &win_create_c);
  set(OFFPATH_FUNCTION_Win_allocate_c, &win_allocate_c);
  set(OFFPATH_FUNCTION_Win_set_info, &win_set_info);
  set(OFFPATH_FUNCTION_Win_fence, &win_fence);
  set(OFFPATH_FUNCTION_Win_free, &win_free);
  set(OFFPATH_FUNCTION_Put, &put);
  set(OFFPATH_FUNCTION_Get, &get);
}

}  // namespace offpath::mpi::regions
