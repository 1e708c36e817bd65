// SPDX-License-Identifier: BSD-3-Clause
// Regions that the program names (include/offpath/region.h), as they are recorded. Those of a thread lie inside each
// other: with one that ends, all end that began inside it.
//
// Threads: the caller's lock.
#pragma once

#include "mpi/recording/part.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::mpi::recording {

class UserRegions {
 public:
  static constexpr size_t kMaxNames = 10'000, kMaxNameBytes = 255, kMaxDepth = 1'000;

  void begin(Part& part, uint32_t thread, std::string_view name, uint64_t now_ns);
  // The innermost of that name; of none that is open, nothing.
  void end(Part& part, uint32_t thread, std::string_view name, uint64_t now_ns);
  // The program's part is over.
  void end_all(Part& part, uint64_t now_ns);

 private:
  struct Open {
    uint16_t name;
    uint64_t begin_ns;
  };
  struct Thread {
    std::vector<Open> open;  // the innermost last
    size_t deeper = 0;       // inside those, and left out
  };
  // Its number in the part; all names beyond a bound are one.
  uint16_t number_of(Part& part, std::string_view name);

  std::map<uint32_t, Thread> threads_;
  std::map<std::string, uint16_t, std::less<>> names_;
};

// The calling thread's number, from 0.
uint32_t thread_number();

}  // namespace offpath::mpi::recording
