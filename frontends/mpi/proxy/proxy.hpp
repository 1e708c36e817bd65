// SPDX-License-Identifier: BSD-3-Clause
// Proxy: native MPI for the target regions of this process. Regions' calls come as upcalls on the threads of the
// devices' channels, where those that native MPI can only start or answer at once are; the rest is the progress
// thread's.
//
// Threads: start and stop by the thread that calls MPI_Init and MPI_Finalize; everything else from any.
#pragma once

#include "mpi/proxy/contexts.hpp"
#include "mpi/proxy/progress.hpp"
#include "mpi/proxy/upcall.hpp"
#include "mpi/proxy/windows.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace offpath::mpi::regions {

class Proxy {
 public:
  // After MPI_Init. Collective. `provided`: the level native MPI has granted.
  void start(int provided);
  // Before MPI_Finalize: what is underway is given up. Collective.
  void stop();
  bool active() const { return active_.load(std::memory_order_acquire); }

  // Never blocks; answers now or later.
  void serve(offpath_upcall_request_t* request);
  void lose(uint64_t channel) { progress_.lose(channel); }

  ContextTable& contexts() { return contexts_; }
  // For a host window: runs when the region's window that belongs to it is there, then host->end() is due. After
  // host->begin().
  void when_partner(const std::shared_ptr<HostWindow>& host, HostTask::Run run);
  // No message reaches that window any more; its memory may go. Blocks.
  void retire(const std::shared_ptr<HostWindow>& host);

 private:
  void dispatch(Upcall upcall);
  void refuse(Upcall upcall);

  std::atomic<bool> active_{false};
  std::atomic<bool> reported_{false};
  const char* reason_ = "MPI is not initialised";
  Progress progress_;
  ContextTable contexts_;
  RegionWindows windows_{progress_};
};

extern Proxy proxy;

}  // namespace offpath::mpi::regions
