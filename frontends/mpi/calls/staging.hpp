// SPDX-License-Identifier: BSD-3-Clause
// Staging memory of operations. A few pieces are kept for the next operation: memory fresh from the system costs a page
// fault every 4 KiB.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace offpath::mpi {

class Staging {
 public:
  Staging() = default;
  Staging(Staging&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
  Staging& operator=(Staging&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ~Staging() { give_back(); }

  // At least so many bytes. False: no memory.
  bool take(uint64_t bytes);
  void give_back();
  // Leaves the memory to whoever may still write to it.
  void abandon() { memory_ = nullptr; }
  std::byte* get() const { return memory_; }

 private:
  std::byte* memory_ = nullptr;
  uint64_t capacity_ = 0;
};

}  // namespace offpath::mpi
