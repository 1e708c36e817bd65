// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/native/waits.hpp"

#include "base/clock.hpp"
#include "mpi/native/native.hpp"

#include <atomic>

namespace offpath::mpi::waits {
namespace {

Native below;
std::atomic<offpath_wait_told_t*> listener{nullptr};

class Waiting {
 public:
  Waiting() {
    if (waits_ || Inside::here()) return;
    told_ = listener.load(std::memory_order_relaxed);
    if (told_ == nullptr) return;
    waits_ = true;
    begin_ns_ = base::clock_ns();
    told_(begin_ns_, 0);
  }
  ~Waiting() {
    if (told_ == nullptr) return;
    told_(begin_ns_, base::clock_ns());
    waits_ = false;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  inline static constinit thread_local bool waits_ = false;  // this thread, in a call further out
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

void set(void** handlers) {
#define OFFPATH_SET(name) handlers[OFFPATH_FUNCTION_##name] = reinterpret_cast<void*>(&Around<&Native::name>::call)
#define OFFPATH_SET_BOTH(name) OFFPATH_SET(name), OFFPATH_SET(name##_c)
  OFFPATH_SET(Wait);
  OFFPATH_SET(Waitall);
  OFFPATH_SET(Waitany);
  OFFPATH_SET(Waitsome);
  OFFPATH_SET(Barrier);
  OFFPATH_SET_BOTH(Bcast);
  OFFPATH_SET_BOTH(Gather);
  OFFPATH_SET_BOTH(Gatherv);
  OFFPATH_SET_BOTH(Scatter);
  OFFPATH_SET_BOTH(Scatterv);
  OFFPATH_SET_BOTH(Allgather);
  OFFPATH_SET_BOTH(Allgatherv);
  OFFPATH_SET_BOTH(Alltoall);
  OFFPATH_SET_BOTH(Alltoallv);
  OFFPATH_SET_BOTH(Allreduce);
  OFFPATH_SET_BOTH(Reduce);
  OFFPATH_SET_BOTH(Reduce_scatter);
  OFFPATH_SET_BOTH(Reduce_scatter_block);
  OFFPATH_SET_BOTH(Scan);
  OFFPATH_SET_BOTH(Exscan);
  OFFPATH_SET_BOTH(Recv);
  OFFPATH_SET_BOTH(Mrecv);
  OFFPATH_SET_BOTH(Sendrecv);
  OFFPATH_SET_BOTH(Sendrecv_replace);
  OFFPATH_SET(Probe);
  OFFPATH_SET(Mprobe);
  OFFPATH_SET(Send);
  OFFPATH_SET(Ssend);
  OFFPATH_SET(Rsend);
  OFFPATH_SET(Win_fence);
  OFFPATH_SET(Win_start);
  OFFPATH_SET(Win_complete);
  OFFPATH_SET(Win_wait);
  OFFPATH_SET(Win_lock);
  OFFPATH_SET(Win_unlock);
  OFFPATH_SET(Win_unlock_all);
  OFFPATH_SET(Win_flush);
  OFFPATH_SET(Win_flush_all);
#undef OFFPATH_SET_BOTH
#undef OFFPATH_SET
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
