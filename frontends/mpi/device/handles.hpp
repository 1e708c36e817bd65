// SPDX-License-Identifier: BSD-3-Clause
// Handles of the library's own objects: an index and a generation, so a stale or made-up handle is found out. Their
// values are small numbers, which no MPI uses for predefined objects.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

namespace offpath::regions {

template <typename Handle, typename Object>
class Handles {
 public:
  // False: there are too many. May throw bad_alloc.
  bool add(std::shared_ptr<Object> object, Handle* handle) {
    std::lock_guard lock(mutex_);
    uint32_t index = 0;
    if (!free_.empty()) {
      index = free_.back();
      free_.pop_back();
    } else {
      if (slots_.size() >= kMaxObjects) return false;
      index = static_cast<uint32_t>(slots_.size());
      slots_.emplace_back();
    }
    Slot& slot = slots_[index];
    slot.object = std::move(object);
    slot.generation = slot.generation % kGenerations + 1;
    *handle = to_handle(slot.generation << kIndexBits | index);
    return true;
  }
  // Nothing: there is no such object.
  std::shared_ptr<Object> find(Handle handle) {
    std::lock_guard lock(mutex_);
    Slot* const slot = slot_of(handle);
    return slot == nullptr ? nullptr : slot->object;
  }
  std::shared_ptr<Object> remove(Handle handle) {
    std::lock_guard lock(mutex_);
    Slot* const slot = slot_of(handle);
    if (slot == nullptr) return nullptr;
    free_.push_back(static_cast<uint32_t>(slot - slots_.data()));
    return std::move(slot->object);
  }

 private:
  static constexpr uint32_t kIndexBits = 20;
  static constexpr uint32_t kMaxObjects = 1U << kIndexBits;
  static constexpr uint32_t kGenerations = 63;
  struct Slot {
    std::shared_ptr<Object> object;
    uint32_t generation = 0;
  };

  static Handle to_handle(uint32_t value) {
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
    else
      return static_cast<Handle>(value);
  }
  Slot* slot_of(Handle handle) {
    uint64_t value = 0;
    if constexpr (std::is_pointer_v<Handle>)
      value = reinterpret_cast<uintptr_t>(handle);
    else
      value = static_cast<uint32_t>(handle);
    const uint64_t index = value & (kMaxObjects - 1);
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.object != nullptr && slot.generation == value >> kIndexBits ? &slot : nullptr;
  }

  std::mutex mutex_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
};

}  // namespace offpath::regions
