// SPDX-License-Identifier: BSD-3-Clause
// Persistent requests whose starts make other requests. The application holds one that the library made; what its start
// has made is exchanged for it around the functions that complete requests.
//
// Threads: any; MPI forbids two threads to use one request at a time.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::mpi {

struct Standing {
  virtual ~Standing() = default;
  // MPI error code after the handler was called. May throw bad_alloc.
  virtual int start(MPI_Request* handle) = 0;

  // What the library is to see in its place: what the last start made, or the handle itself. Null: it is inactive, which
  // means the same to the functions that complete requests; MPICH waits for ever for one that was never started.
  MPI_Request current = MPI_REQUEST_NULL;
};

class Standings {
 public:
  // May throw bad_alloc.
  void add(MPI_Request request, std::unique_ptr<Standing> made);
  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }
  // nullptr: none of these.
  Standing* find(MPI_Request request) const;
  std::unique_ptr<Standing> take(MPI_Request request);
  // As MPI_Start and MPI_Startall, whatever the requests are. May throw bad_alloc.
  int start(MPI_Request* request) const;
  int start_all(int count, MPI_Request* requests) const;
  // At MPI_Finalize, when nothing is under way.
  void clear();

 private:
  std::atomic<size_t> count_{0};  // to know without the lock that there are none
  mutable std::mutex mutex_;
  std::unordered_map<uintptr_t, std::unique_ptr<Standing>> entries_;
};

extern Standings standings;

// The requests of one call, as the library is to see them.
class Exchanged {
 public:
  // May throw bad_alloc.
  Exchanged(int count, MPI_Request* requests);
  // After the call: gives the application its handles back.
  ~Exchanged();
  Exchanged(const Exchanged&) = delete;
  Exchanged& operator=(const Exchanged&) = delete;

  MPI_Request* get() { return copies_.empty() ? requests_ : copies_.data(); }
  // The same, where they are not the application's memory.
  MPI_Request* copies();

 private:
  int count_;
  MPI_Request* requests_;
  std::vector<MPI_Request> copies_;                      // if any differs
  std::vector<std::pair<size_t, Standing*>> standings_;  // by index
};

}  // namespace offpath::mpi
