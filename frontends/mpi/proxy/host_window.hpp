// SPDX-License-Identifier: BSD-3-Clause
// The host side's part of a window, as far as the other side can be concerned. Its own one-sided communication is not:
// that stays with the native window or the offloaded one.
#pragma once

#include "mpi/proxy/contexts.hpp"

#include <mpi.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

namespace offpath::mpi::regions {

struct HostWindow {
  std::shared_ptr<Contexts> contexts;
  size_t number = 0;  // of the communicator's windows
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  MPI_Aint unit = 1;
  MPI_Comm agreement = MPI_COMM_NULL;  // for what its ranks settle at a fence
  bool named = false;                  // this rank has said something of REMOTE_DEST_HETERO
  bool crosses = false;                // puts and gets go to the other side
  bool paired = false;                 // some rank has: fences are common to both sides. Alike on all ranks

  // What the program's thread waits for on the progress thread.
  std::mutex mutex;
  std::condition_variable changed;
  size_t underway = 0;  // puts and gets to the other side, and a common fence
  int error = MPI_SUCCESS;

  HostWindow() = default;
  ~HostWindow() {
    const Inside inside;
    if (agreement != MPI_COMM_NULL) native.Comm_free(&agreement);
  }
  HostWindow(const HostWindow&) = delete;
  HostWindow& operator=(const HostWindow&) = delete;

  void begin() {
    std::lock_guard lock(mutex);
    ++underway;
  }
  void end(int code) {
    std::lock_guard lock(mutex);
    if (error == MPI_SUCCESS) error = code;
    if (--underway == 0) changed.notify_all();
  }
  // The first error since the last time.
  int settle() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return underway == 0; });
    const int first = error;
    error = MPI_SUCCESS;
    return first;
  }
};

}  // namespace offpath::mpi::regions
