// SPDX-License-Identifier: BSD-3-Clause
// Where in the program a call was made. A return address says it, but for Fortran: those calls come through wrappers of
// the MPI library, so the stack is looked at behind them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace offpath::mpi::recording {

class Callers {
 public:
  // Finds the wrappers among the objects that are loaded. Once, before any call.
  void find_wrappers();
  const void* of(const void* return_address) const {
    return is_wrapper(return_address) ? behind_wrappers(return_address) : return_address;
  }
  bool is_wrapper(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    for (size_t i = 0; i < count_; ++i) {
      if (at - wrappers_[i].begin < wrappers_[i].bytes) return true;
    }
    return false;
  }
  void add(uintptr_t begin, size_t bytes) {
    if (count_ < wrappers_.size()) wrappers_[count_++] = {begin, bytes};
  }

 private:
  struct Range {
    uintptr_t begin = 0;
    size_t bytes = 0;
  };
  const void* behind_wrappers(const void* return_address) const;

  std::array<Range, 8> wrappers_{};
  size_t count_ = 0;
};

}  // namespace offpath::mpi::recording
