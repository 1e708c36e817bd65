// SPDX-License-Identifier: BSD-3-Clause
// Executor: runs the target regions of one host process. Its threads take commands from the channel themselves; one of
// them is always idle, so regions that wait for each other never wait for a thread.
#pragma once

#include "executor/endpoint.hpp"
#include "executor/images.hpp"
#include "executor/upcalls.hpp"

#include <atomic>
#include <memory>
#include <string>

namespace offpath::executor {

struct Options {
  int socket = -1;
  device::Line line{-1};              // on it
  bool segment = true;                // else: stream
  uint64_t memory_bytes = 0;          // most that the heap may have; 0: half of the machine's
  uint32_t max_clients = 0;           // told to the host
  std::chrono::microseconds spin{0};  // see open_segment_endpoint
  device::DeviceKind kind = device::DeviceKind::software;
};

class Executor {
 public:
  static constexpr uint32_t kMaxThreads = 512;

  // Reserves the heap, says hello or why not.
  base::Status open(const Options& options);
  // Serves until the host closes the channel.
  void serve();

  Upcalls& upcalls() { return upcalls_; }
  int number() const { return number_; }

 private:
  void add_thread();
  void work();
  void leave_to_parent();
  device::Answer run(const device::Command& command);
  base::Status load(const device::Command& command);
  base::Status launch(const device::Command& command);

  Options options_;
  Upcalls upcalls_;
  Images images_;
  std::unique_ptr<Endpoint> endpoint_;
  std::atomic<int> number_{0};        // of the device in the program
  std::atomic<bool> parents_{false};  // of the process that this one was forked from
  std::atomic<uint32_t> idle_{0};
  std::atomic<uint32_t> threads_{0};
};

// The only one of this process: the C functions of device/upcall.h mean it.
Executor& the_executor();

}  // namespace offpath::executor
