// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/waits.hpp"

#include "base/clock.hpp"
#include "mpi/native/native.hpp"

#include <atomic>
#include <ctime>
#include <tuple>

namespace offpath::mpi::waits {
namespace {

// What mpi_functions.def says of a function: an argument's number, or one of these.
constexpr int returns = -1, blocks = -2;
constexpr int polls(int what) { return what; }

Native below;
std::atomic<offpath_wait_told_t*> listener{nullptr};
constinit thread_local bool blocked = false;  // this thread, in a call further out

class Waiting {
 public:
  // Out of line, as the functions that block are many.
  [[gnu::noinline]] Waiting() {
    if (blocked || Inside::here()) return;
    told_ = listener.load(std::memory_order_relaxed);
    if (told_ == nullptr) return;
    blocked = true;
    begin_ns_ = base::clock_ns();
    told_(OFFPATH_TOLD_BLOCKS, begin_ns_, 0);
  }
  [[gnu::noinline]] ~Waiting() {
    if (told_ == nullptr) return;
    told_(OFFPATH_TOLD_GOES_ON, begin_ns_, base::clock_ns());
    blocked = false;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  offpath_wait_told_t* told_ = nullptr;
  uint64_t begin_ns_ = 0;
};

template <auto member>
struct Around;
template <typename... Arguments, int (*Native::*member)(Arguments...)>
struct Around<member> {
  static int call(Arguments... arguments) {
    const Waiting waiting;
    return (below.*member)(arguments...);
  }
};

// A thread that asks again and again. It waits while it does little else: by its own time on a core, as others may have that core
// between. Only every kLook-th time is a clock looked at.
class Polls {
 public:
  static constexpr uint32_t kLook = 64;
  static constexpr uint64_t kMostNs = 10000;  // of its time, for each: what a call of MPI takes, and a little

  void in_vain() {
    if (--left_ == 0) look();
  }
  void over() {
    left_ = kLook;
    since_ns_ = 0;
    end();
  }

 private:
  void look() {
    left_ = kLook;
    offpath_wait_told_t* told = listener.load(std::memory_order_relaxed);
    if (told == nullptr || blocked || Inside::here()) return;
    timespec used{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    const uint64_t used_ns = static_cast<uint64_t>(used.tv_sec) * 1000000000 + static_cast<uint64_t>(used.tv_nsec);
    const uint64_t now_ns = base::clock_ns();
    const bool waits = since_ns_ != 0 && used_ns - used_ns_ < kLook * kMostNs;
    if (waits) {
      told_ = true;
      told(OFFPATH_TOLD_POLLS, since_ns_, now_ns);
    } else {
      end();
    }
    used_ns_ = used_ns;
    since_ns_ = now_ns;
  }
  void end() {
    if (!told_) return;
    told_ = false;
    listener.load(std::memory_order_relaxed)(OFFPATH_TOLD_POLLS_NO_MORE, 0, 0);
  }

  uint32_t left_ = kLook;
  bool told_ = false;
  uint64_t since_ns_ = 0;  // the last look; 0: there was none since something happened
  uint64_t used_ns_ = 0;
};
constinit thread_local Polls polling;

template <auto member, int what>
struct Poll;
template <typename... Arguments, int (*Native::*member)(Arguments...), int what>
struct Poll<member, what> {
  static int call(Arguments... arguments) {
    const int code = (below.*member)(arguments...);
    const auto* happened = std::get<what>(std::tuple(arguments...));
    if (code == MPI_SUCCESS && *happened == 0) {
      polling.in_vain();
    } else {
      polling.over();
    }
    return code;
  }
};

template <auto member, int waits>
void put(void*& handler) {
  if constexpr (waits == blocks) {
    handler = reinterpret_cast<void*>(&Around<member>::call);
  } else if constexpr (waits != returns) {
    handler = reinterpret_cast<void*>(&Poll<member, waits>::call);
  }
}

void set(void** handlers) {
#define OFFPATH_MPI_FUNCTION(name, waits, seen) put<&Native::name, waits>(handlers[OFFPATH_FUNCTION_##name]);
#include <offpath/words/mpi_functions.def>
}

}  // namespace

void install(offpath_backend_t* backend, Timed timed) {
  below = native.under(backend->handlers);
  if (timed == Timed::always) {
    set(backend->handlers);
    backend->time_waits = [](offpath_wait_told_t* told, void**) { listener.store(told, std::memory_order_relaxed); };
  } else {
    backend->time_waits = [](offpath_wait_told_t* told, void** handlers) {
      listener.store(told, std::memory_order_relaxed);
      set(handlers);
    };
  }
}

}  // namespace offpath::mpi::waits
