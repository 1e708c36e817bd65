// SPDX-License-Identifier: BSD-3-Clause
// SharedArray: memory that the leader of a group has from its service, mapped by all ranks of the group, each of which
// owns a stretch of it.
#pragma once

#include "petsc/executor.hpp"
#include "petsc/groups.hpp"

namespace offpath::petsc {

class SharedArray {
 public:
  SharedArray() = default;
  SharedArray(SharedArray&& other) noexcept;
  SharedArray& operator=(SharedArray&&) = delete;
  ~SharedArray();  // only unmaps; the leader's memory is released after all have done so

  // Collective over the group; the stretches lie in the order of ranks, without gaps. `service`: null but for the
  // leader. False on all ranks when there is no memory, or a rank cannot reach the leader's.
  bool make(const Groups& groups, Executor* service, uint64_t own_bytes);

  uint8_t* begin() const { return begin_; }
  uint8_t* own() const { return begin_ + own_offset_; }
  uint64_t own_offset() const { return own_offset_; }
  // Whether an address of this process lies in the own stretch, or at its end.
  bool owns(const void* address) const;
  // The same byte in the leader's process; precondition: owns().
  template <typename T>
  const T* at_leader(const T* address) const {
    return reinterpret_cast<const T*>(leader_ +
                                      (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(begin_)));
  }

 private:
  struct Place;  // what the leader tells
  bool map(const Place& place);

  uint8_t* begin_ = nullptr;
  uint64_t bytes_ = 0;  // of all
  uint64_t own_offset_ = 0, own_bytes_ = 0;
  uintptr_t leader_ = 0;  // where it begins there
  bool mapped_ = false;
};

}  // namespace offpath::petsc
