// SPDX-License-Identifier: BSD-3-Clause
// Keep: memory that no session of this process moves, as somebody else may write it at any time, or has it registered. It belongs to
// the process and not to a session: the next session moves what the one before has not, whose service may still write there.
#pragma once

#include "client/moved/extents.hpp"
#include "watch/watch.h"

#include <utility>

namespace offpath::client::moved {

// Of this process; null: nothing is moved in it.
const offpath_watch_t* watch();

// Until release() of the same, as often as that. Any thread.
void keep(const Extent& memory);
void release(const Extent& memory);

// As long as it is there.
class Keep {
 public:
  Keep() = default;
  explicit Keep(const Extent& memory) : memory_(memory) { keep(memory_); }
  ~Keep() { release(memory_); }
  Keep(Keep&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  Keep& operator=(Keep&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }

 private:
  Extent memory_;
};

}  // namespace offpath::client::moved
