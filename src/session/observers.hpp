// SPDX-License-Identifier: BSD-3-Clause
// Observers: processes of the same user that watch a service. What they see (observation.hpp) is written at a slow tick,
// while there is an observer; without one there is neither the memory nor a tick. One thread.
#pragma once

#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "session/link.hpp"
#include "session/observation.hpp"

#include <functional>
#include <vector>

namespace offpath::session {

class Observers {
 public:
  static constexpr size_t kMost = 64;
  // Has a page written, soon.
  using Publish = std::function<void(uint32_t number, WorkerPage& page)>;

  struct Options {
    uint32_t pages = 1;
    uint32_t tick_ms = 100;
    bool shares_cores = false;
  };
  Observers(Options options, Publish publish);

  // Answers a process that asks to watch; the caller has filled in the rest of the reply. If it is admitted the pages
  // are kept up until it leaves.
  void greet(base::Fd socket, const base::Result<PeerCredentials>& credentials, const AttachRequest& request,
             AttachReply reply);
  bool any() const { return !sockets_.empty(); }
  // Lets go of those that have left; an observer has nothing to say.
  void look();
  // Readable when look() has something to do.
  int event_fd() const { return epoll_.get(); }
  void tick();
  // Ticks if it is time. In how many ms it will be again; -1: nobody watches.
  int tick_if_due();

 private:
  // The descriptor to pass on, ours.
  base::Result<int> admit();
  void add(base::Fd socket);

  const Options options_;
  const Publish publish_;
  const uint64_t started_ns_;
  uint64_t ticked_ns_ = 0;
  base::Fd epoll_;
  base::Memfd memory_;  // from the first observer on
  std::vector<base::Fd> sockets_;
};

}  // namespace offpath::session
