// SPDX-License-Identifier: BSD-3-Clause
// An upcall that the proxy has to answer, once. Its arguments are a copy: the region cannot change them any more.
#pragma once

#include "mpi/native/native.hpp"
#include "mpi/regions/protocol.hpp"

#include <mpi.h>

#include <cstdint>
#include <span>

namespace offpath::mpi::regions {

using offpath::regions::Arguments;
using offpath::regions::Call;
using offpath::regions::Crossing;
using offpath::regions::Result;

const char* name_of(Call call);

class Upcall {
 public:
  Upcall() = default;
  Upcall(offpath_upcall_request_t* request, const Arguments& arguments) : request_(request), arguments_(arguments) {}
  Upcall(Upcall&& other) noexcept : request_(other.request_), arguments_(other.arguments_), result(other.result) {
    other.request_ = nullptr;
  }
  Upcall& operator=(Upcall&& other) noexcept;
  // What nobody answered is an error.
  ~Upcall() { answer(MPI_ERR_OTHER); }

  explicit operator bool() const { return request_ != nullptr; }
  const Arguments& arguments() const { return arguments_; }
  uint64_t channel() const { return request_->channel; }
  std::span<std::byte> input() const;
  std::span<std::byte> output() const;
  // nullptr: the host does not see that memory.
  void* view(uint64_t address, uint64_t bytes) const { return request_->view(request_, address, bytes); }
  // Input and output are the same buffer of the region; where they were staged they are two.
  void carry_over() const;

  // `code`: of native MPI. An error makes one line on stderr.
  void answer(int code);
  // For failures whose line was written elsewhere.
  void answer_quietly(int error_class);

 private:
  offpath_upcall_request_t* request_ = nullptr;
  Arguments arguments_{};

 public:
  Result result{};
};

}  // namespace offpath::mpi::regions
