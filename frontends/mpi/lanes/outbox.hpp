// SPDX-License-Identifier: BSD-3-Clause
// Messages of ours that are on their way (tickets, words, letters): nobody waits for them, but their bytes stay until the
// library has sent them.
//
// Threads: any.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <vector>

namespace offpath::mpi {

class Outbox {
 public:
  // Without memory for it the bytes are never freed.
  template <typename Message>
  void add(MPI_Request request, std::unique_ptr<Message> message) noexcept {
    add(request, Bytes(message.release(), [](void* bytes) { delete static_cast<Message*>(bytes); }));
  }
  // Lets go of those that were sent.
  void tidy();
  bool empty();
  // Leaves the rest to the library, and their memory.
  void abandon();

 private:
  using Bytes = std::unique_ptr<void, void (*)(void*)>;
  struct Sent {
    MPI_Request request;
    Bytes bytes;
  };
  void add(MPI_Request request, Bytes bytes) noexcept;

  std::mutex mutex_;
  std::vector<Sent> sent_;
};

}  // namespace offpath::mpi
