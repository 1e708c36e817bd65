// SPDX-License-Identifier: BSD-3-Clause
// Observers: processes of the same user that watch the service. What they see (session/observation.hpp) is written by
// the workers, every kTickMs while there is an observer; without one there is neither the memory nor a tick.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "session/observation.hpp"

#include <functional>
#include <vector>

namespace offpath::service {

class Observers {
 public:
  static constexpr int kTickMs = 100;
  static constexpr size_t kMost = 64;
  // Has a worker write its page, soon and on its own thread; not while it is still to write it for an earlier call.
  using Publish = std::function<void(uint32_t worker, session::WorkerPage& page)>;

  Observers(uint32_t workers, bool shares_cores, Publish publish);

  // The descriptor to pass on, ours. From the admission on, which is when add() is called, the pages are kept up.
  base::Result<int> admit();
  void add(base::Fd socket);
  bool any() const { return !sockets_.empty(); }
  // Lets go of those that have left; an observer has nothing to say.
  void look();
  // Readable when look() has something to do.
  int event_fd() const { return epoll_.get(); }
  void tick();

 private:
  uint32_t workers_;
  bool shares_cores_;
  Publish publish_;
  uint64_t started_ns_;
  base::Fd epoll_;
  base::Memfd memory_;  // from the first observer on
  std::vector<base::Fd> sockets_;
};

}  // namespace offpath::service
