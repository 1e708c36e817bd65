// SPDX-License-Identifier: BSD-3-Clause
// The guard that tells a front end's own use of the native library from the application's.
#pragma once

#include "base/result.hpp"

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

}  // namespace offpath::attach
