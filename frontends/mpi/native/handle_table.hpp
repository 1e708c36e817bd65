// SPDX-License-Identifier: BSD-3-Clause
// MPI handle -> our object. An entry lives exactly as long as the handle means that object: it is removed by the
// request's free callback or the communicator's attribute callback.
//
// Threads: any. The lock inside is a leaf: no native call and no other lock is taken under it, because those callbacks
// may run while the native library holds locks of its own.
#pragma once

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <unordered_map>

namespace offpath::mpi {

// Handles are pointers in Open MPI and integers in MPICH.
template <typename Handle>
uintptr_t handle_key(Handle handle) {
  if constexpr (std::is_pointer_v<Handle>)
    return reinterpret_cast<uintptr_t>(handle);
  else
    return static_cast<uintptr_t>(handle);
}

template <typename Handle, typename Object>
class HandleTable {
 public:
  // May throw bad_alloc; then nothing is entered.
  void insert(Handle handle, Object* object) {
    std::lock_guard lock(mutex_);
    entries_.insert_or_assign(handle_key(handle), object);
  }
  void erase(Handle handle) {
    std::lock_guard lock(mutex_);
    entries_.erase(handle_key(handle));
  }
  Object* find(Handle handle) const {
    std::lock_guard lock(mutex_);
    const auto entry = entries_.find(handle_key(handle));
    return entry == entries_.end() ? nullptr : entry->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, Object*> entries_;
};

}  // namespace offpath::mpi
