// SPDX-License-Identifier: BSD-3-Clause
// The guard that tells a front end's own use of the native library from the application's.
#pragma once

#include "base/result.hpp"

#include <utility>

namespace offpath::attach {

// Marks this thread as ours while it lives, and keeps errno. Intercepted calls that arrive meanwhile come from the
// native library's insides and pass straight through. Never alive during a call that may run a callback of the
// application (attribute callbacks, error handlers): what those call is the application's.
class Inside {
 public:
  Inside() { ++depth_; }
  ~Inside() { --depth_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  static bool here() { return depth_ != 0; }

 private:
  base::ErrnoGuard errno_guard_;
  inline static constinit thread_local int depth_ = 0;
};

// In calls that wait for all other ranks, without a lock of ours: meanwhile this one does what they may wait for, in the
// rounds of the native library's waiting.
class Meeting {
 public:
  Meeting() : before_(std::exchange(here_, true)) {}
  ~Meeting() { here_ = before_; }
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  // Not while the thread does that.
  class Left {
   public:
    Left() : was_here_(std::exchange(here_, false)) {}
    ~Left() { here_ = was_here_; }
    Left(const Left&) = delete;
    Left& operator=(const Left&) = delete;
    bool was_here() const { return was_here_; }

   private:
    const bool was_here_;
  };

 private:
  const Inside inside_;
  const bool before_;
  inline static constinit thread_local bool here_ = false;
};

}  // namespace offpath::attach
