// SPDX-License-Identifier: BSD-3-Clause
// File: an open file as a place of bytes: addresses are offsets in it (docs/design/0046-files.md). Reading and writing may take as
// long as a disk does, so threads do it, and the port answers later.
//
// Threads: any. Nothing blocks, but for what ends FileThreads.
#pragma once

#include "base/fd.hpp"
#include "memory/port.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace offpath::memory {

// Threads that do what blocks, in the order in which it was asked for. They are made as they are needed.
class FileThreads {
 public:
  explicit FileThreads(uint32_t most) : most_(most) {}
  // Does what was asked for before.
  ~FileThreads();
  FileThreads(const FileThreads&) = delete;
  FileThreads& operator=(const FileThreads&) = delete;
  // False: the system gives no thread, and nothing will be done.
  bool run(std::function<void()> work);

 private:
  void loop();

  const uint32_t most_;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> waiting_;
  std::vector<std::thread> threads_;
  uint32_t idle_ = 0;
  bool ending_ = false;
};

// A file as its accesses share it.
struct OpenFile : base::Fd {
  explicit OpenFile(base::Fd descriptor) : Fd(std::move(descriptor)) {}
  // Who writes with locks waits for those of others: not where one has kept its for longer than a library needs, until one is got again.
  mutable std::atomic<bool> waits_for_locks{true};
};

// What the file system has said to the accesses of a port: the first error, as errno has it; 0: there was none.
using FileError = std::atomic<int32_t>;

// An access that the file system refuses fails with OFFPATH_ERR_FILE, as does one that finds the file shorter than what is to be
// read. Of what fails any part may have been done. The threads outlive the port's accesses; null: it answers at once. `locks`: a
// write holds a lock of the descriptor's on what it writes, where the file system has locks.
std::unique_ptr<Port> make_file(std::shared_ptr<const OpenFile> file, FileThreads* threads,
                                std::shared_ptr<FileError> error, bool locks = false);

}  // namespace offpath::memory
