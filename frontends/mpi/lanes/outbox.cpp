// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/outbox.hpp"

#include "mpi/job/job.hpp"
#include "mpi/native/native.hpp"

#include <exception>

namespace offpath::mpi {

void Outbox::add(MPI_Request request, Bytes bytes) noexcept {
  std::lock_guard lock(mutex_);
  try {
    sent_.reserve(sent_.size() + 1);
  } catch (const std::exception&) {
    static_cast<void>(bytes.release());  // the library may still read it
    return;
  }
  sent_.push_back({request, std::move(bytes)});
}

void Outbox::tidy() {
  const Inside inside;  // what the library calls meanwhile may come here
  std::lock_guard lock(mutex_);
  std::erase_if(sent_, [](Sent& sent) {
    int done = 0;
    return native.Test(&sent.request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done != 0;
  });
}

bool Outbox::empty() {
  std::lock_guard lock(mutex_);
  return sent_.empty();
}

void Outbox::abandon() {
  tidy();
  std::lock_guard lock(mutex_);
  for (Sent& sent : sent_) {
    native.Request_free(&sent.request);
    static_cast<void>(sent.bytes.release());
  }
  sent_.clear();
}

}  // namespace offpath::mpi
