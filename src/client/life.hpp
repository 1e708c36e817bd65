// SPDX-License-Identifier: BSD-3-Clause
// Life: a session's service as the session reaches it: its end of the socket, and whether the service lives: it hangs up, or gives no
// sign of life. Owned by the session. Any thread; nothing blocks but leave() and close(). Internal to client/.
#pragma once

#include "base/fd.hpp"
#include "base/silence.hpp"
#include "base/starvation.hpp"
#include "session/layout.hpp"
#include "session/link.hpp"

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace offpath::client {

class Life {
 public:
  // The header stays as long as this.
  explicit Life(session::SegmentHeader& header) : header_(header), silence_(base::silence_limit_ns()) {}

  // Once it is known who serves this process.
  void begin(pid_t process, pid_t thread) {
    process_ = process;
    starvation_ = base::Starvation(process, thread);
  }
  pid_t process() const { return process_; }

  // Looks at the socket, and from time to time whether the service gives a sign of life; one that does not is ended,
  // and lost when it has let go of the socket: until then it may still write.
  bool check();
  // client::ask(), client::has_answered().
  uint32_t ask();
  bool has_answered(uint32_t question) const;
  // False: it was awake.
  bool wake_worker();
  // Has the service let go of this process.
  void leave();
  // Of a lost one, when no thread is at the socket any more.
  void close();

  // See offpath_session_starved_ns.
  uint64_t starved_ns() const { return starved_ns_.load(std::memory_order_relaxed); }
  // Of a lost one: how long it had given no sign of life, if that is why.
  uint32_t silence_ms() const { return silence_ms_; }

  std::atomic<bool> lost{false};
  base::Fd socket;
  session::SocketFile socket_file;

 private:
  // A thread that may be at the socket, which is closed only when there is none.
  class AtSocket {
   public:
    explicit AtSocket(Life& life) : life_(life) { ++life_.at_socket_; }
    ~AtSocket() { --life_.at_socket_; }
    AtSocket(const AtSocket&) = delete;
    AtSocket& operator=(const AtSocket&) = delete;

   private:
    Life& life_;
  };

  bool hangs_up();
  void listen();
  base::Silence::Verdict judge(base::Silence& silence, uint64_t now_ns, bool answered);
  void note_silence();
  void end_service();

  session::SegmentHeader& header_;
  pid_t process_ = 0;
  std::atomic<uint32_t> at_socket_{0};
  std::atomic<uint64_t> starved_ns_{0};
  std::atomic<uint32_t> silence_ms_{0};
  std::atomic_flag listening_;
  base::Silence silence_;  // held: listening_, as the next ones
  base::Starvation starvation_;
  uint32_t asked_ = 0;
};

}  // namespace offpath::client
