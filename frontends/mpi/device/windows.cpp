// SPDX-License-Identifier: BSD-3-Clause
// Windows of regions: MPI_Win_create, MPI_Put, MPI_Get, MPI_Win_fence. A put or get is over when a fence is; the fence
// waits for the upcalls of the epoch first.
#include "mpi/device/call.hpp"
#include "mpi/device/handles.hpp"
#include "mpi/device/info.hpp"

#include <deque>

namespace offpath::regions {
namespace {

struct Window {
  uint64_t name = 0;
  Buffer memory;
  bool shadowed = false;
  std::mutex mutex;
  std::deque<UpCall> underway;  // stays in place
};

Handles<MPI_Win, Window> windows;

Arguments arguments_of(Call kind, const Window& window) {
  Arguments arguments{};
  arguments.call = kind;
  arguments.mpi = kOwnMpi;
  arguments.handle = window.name;
  return arguments;
}

// Ends what was started. The first error of it.
int settle(Window& window) {
  int code = MPI_SUCCESS;
  std::lock_guard lock(window.mutex);
  for (UpCall& upcall : window.underway) {
    const int own = upcall.wait();
    if (code == MPI_SUCCESS) code = own;
  }
  window.underway.clear();
  return code;
}

int transfer(Call kind, void* data, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count,
             MPI_Datatype target_type, MPI_Win win) {
  const auto window = windows.find(win);
  if (window == nullptr) return MPI_ERR_WIN;
  if (target == MPI_PROC_NULL) return MPI_SUCCESS;
  Arguments arguments = arguments_of(kind, *window);
  Buffer buffer{data, 0};
  uint64_t target_name = 0;
  int code = measure(count, type, &buffer.bytes, &arguments.type);
  if (code == MPI_SUCCESS) code = measure(target_count, target_type, &arguments.bytes, &target_name);
  if (code != MPI_SUCCESS) return code;
  if (arguments.bytes != buffer.bytes) return MPI_ERR_COUNT;
  if (displacement < 0) return MPI_ERR_DISP;
  arguments.peer = target;
  arguments.displacement = displacement;
  std::lock_guard lock(window->mutex);
  UpCall& upcall = window->underway.emplace_back();
  code = kind == Call::put ? upcall.post(arguments, buffer) : upcall.post(arguments, {}, buffer);
  if (code != MPI_SUCCESS) window->underway.pop_back();
  return code;
}

}  // namespace

extern "C" {

int MPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  if (bytes < 0) return MPI_ERR_SIZE;
  if (unit <= 0) return MPI_ERR_DISP;
  Arguments arguments = arguments_of(Call::win_create, comm);
  arguments.address = reinterpret_cast<uintptr_t>(base);
  arguments.bytes = static_cast<uint64_t>(bytes);
  arguments.count = unit;
  arguments.flag = static_cast<int32_t>(crossing_of(info));
  const auto window = std::make_shared<Window>();
  window->memory = {base, arguments.bytes};
  Result result{};
  const int code = call(arguments, &result, window->memory);
  if (code != MPI_SUCCESS) return code;
  window->name = result.value;
  window->shadowed = result.shadowed != 0;
  return windows.add(window, win) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

int MPI_Win_set_info(MPI_Win win, MPI_Info info) {
  const auto window = windows.find(win);
  if (window == nullptr) return MPI_ERR_WIN;
  Arguments arguments = arguments_of(Call::win_set_info, *window);
  arguments.flag = static_cast<int32_t>(crossing_of(info));
  return call(arguments, nullptr);
}

int MPI_Win_fence(int, MPI_Win win) {
  const auto window = windows.find(win);
  if (window == nullptr) return MPI_ERR_WIN;
  const int settled = settle(*window);
  const Buffer memory = window->shadowed ? window->memory : Buffer{};
  const int code = call(arguments_of(Call::win_fence, *window), nullptr, memory, memory);
  return settled == MPI_SUCCESS ? code : settled;
}

int MPI_Win_free(MPI_Win* win) {
  const auto window = windows.remove(*win);
  if (window == nullptr) return MPI_ERR_WIN;
  settle(*window);
  *win = MPI_WIN_NULL;
  return call(arguments_of(Call::win_free, *window), nullptr);
}

int MPI_Put(const void* data, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
  return transfer(Call::put, const_cast<void*>(data), count, type, target, displacement, target_count, target_type,
                  win);
}

int MPI_Get(void* data, int count, MPI_Datatype type, int target, MPI_Aint displacement, int target_count,
            MPI_Datatype target_type, MPI_Win win) {
  return transfer(Call::get, data, count, type, target, displacement, target_count, target_type, win);
}

}  // extern "C"
}  // namespace offpath::regions
