// SPDX-License-Identifier: BSD-3-Clause
// What stands behind a request of the application that concerns us, as the functions that complete requests see it
// (mpi/requests/completion.cpp). The offloader finds it by its handle.
//
// It lives as long as somebody holds it.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace offpath::mpi {

struct Requested {
  Requested() = default;
  Requested(const Requested&) = delete;
  Requested& operator=(const Requested&) = delete;
  virtual ~Requested() = default;

  // The library completes it when we say so, and waits for nothing. Otherwise it is the library's own, which is not over
  // when that has completed it.
  virtual bool is_generalized() const = 0;
  // Nothing is left to wait for. Never waits; moves on what nobody else does. May throw bad_alloc.
  virtual bool over(MPI_Request handle) = 0;
  // Its part is at a service, so a wait for it may sleep.
  virtual bool at_service() const = 0;
  // Native communication goes on beside it, which the offloader's rounds do not move.
  virtual bool goes_beside_native() const { return false; }
  // After the library has completed it without an error: MPI error code; nobody was told. May throw bad_alloc.
  virtual int end(MPI_Status* status) = 0;
  // The same with an error of the library's. Whether that has called the handler of the program's.
  virtual bool drop() { return true; }
  // One that is over, and not completed yet: what it has received is in the application's memory from here on, and `status`,
  // unless it is MPI_STATUS_IGNORE, says what the library's does not. May throw bad_alloc.
  virtual void show(MPI_Status*) {}
  // Calls the error handler of what it was issued on and returns `code`. Not Inside.
  virtual int raise(int code) const = 0;

  int error = MPI_SUCCESS;  // that nobody was told of
  std::atomic<int> owners{0};
};

// A generalized request of ours. Two own it: who works on it until it is finished, and the MPI request until its free
// callback.
struct Generalized : Requested {
  bool is_generalized() const override { return true; }
  bool over(MPI_Request) override { return completed.load(std::memory_order_acquire); }
  bool at_service() const override { return !natively.load(std::memory_order_acquire); }
  // What its status says of bytes; a collective's holds nothing.
  virtual uint64_t moved_bytes() const { return 0; }
  int end(MPI_Status*) override { return finished.load(std::memory_order_acquire) ? error : MPI_SUCCESS; }

  MPI_Request request = MPI_REQUEST_NULL;  // the application's handle, or what stands for it
  std::atomic<bool> natively{false};       // it has ended at the service: only native progress is left
  std::atomic<bool> finished{false};       // `error` is valid from here on
  std::atomic<bool> completed{false};      // and the library has been told: MPICH's MPI_Waitall takes no other
};

// One that belongs to no lane: the offloader asks it in every round, under its lock.
struct Loose : Generalized {
  // Moves it on without waiting. True: it has ended, with `error`. No native call is needed then to delete it. Throws
  // nothing.
  virtual bool advance() = 0;
  // Only a program ends it, so that at the job's end, when no program does any more, nobody waits for it.
  virtual bool waits_for_programs() const { return false; }
  // Lets go of all it has.
  virtual void leave() {}
};

inline MPI_Status* status_or(MPI_Status* given, MPI_Status* own) { return given == MPI_STATUS_IGNORE ? own : given; }

}  // namespace offpath::mpi
