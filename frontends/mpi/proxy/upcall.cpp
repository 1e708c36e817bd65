// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/proxy/upcall.hpp"

#include "mpi/job/job.hpp"
#include "offpath/offpath.h"

#include <cstring>

namespace offpath::mpi::regions {

const char* name_of(Call call) {
  switch (call) {
    case Call::comm_size:
      return "MPI_Comm_size or MPI_Comm_rank";
    case Call::comm_set_info:
      return "MPI_Comm_set_info";
    case Call::abort:
      return "MPI_Abort";
    case Call::send:
      return "MPI_Send or MPI_Isend";
    case Call::recv:
      return "MPI_Recv or MPI_Irecv";
    case Call::iprobe:
      return "MPI_Iprobe";
    case Call::barrier:
      return "MPI_Barrier";
    case Call::bcast:
      return "MPI_Bcast";
    case Call::allreduce:
      return "MPI_Allreduce";
    case Call::alltoall:
      return "MPI_Alltoall";
    case Call::allgather:
      return "MPI_Allgather";
    case Call::win_create:
      return "MPI_Win_create";
    case Call::win_set_info:
      return "MPI_Win_set_info";
    case Call::win_fence:
      return "MPI_Win_fence";
    case Call::win_free:
      return "MPI_Win_free";
    case Call::put:
      return "MPI_Put";
    case Call::get:
      return "MPI_Get";
  }
  return "an unknown call";
}

Upcall& Upcall::operator=(Upcall&& other) noexcept {
  answer(MPI_ERR_OTHER);
  request_ = std::exchange(other.request_, nullptr);
  arguments_ = other.arguments_;
  result = other.result;
  return *this;
}

std::span<std::byte> Upcall::input() const {
  if (request_->input_count == 0) return {};
  return {static_cast<std::byte*>(request_->inputs[0].data), request_->inputs[0].bytes};
}

std::span<std::byte> Upcall::output() const {
  if (request_->output_count < 2) return {};
  return {static_cast<std::byte*>(request_->outputs[1].data), request_->outputs[1].bytes};
}

void Upcall::carry_over() const {
  const auto from = input();
  const auto to = output();
  if (from.data() != to.data() && !from.empty() && from.size() == to.size()) {
    memcpy(to.data(), from.data(), to.size());
  }
}

void Upcall::answer(int code) {
  if (request_ == nullptr) return;
  const Inside inside;
  int error_class = code;
  if (code != MPI_SUCCESS) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    native.Error_class(code, &error_class);
    native.Error_string(code, text, &length);
    say(job.settings(), LogLevel::error,
        "%s in a target region of rank %d failed: %s (the call returned the error class %d). Check its arguments",
        name_of(arguments_.call), job.rank(), text, error_class);
  }
  answer_quietly(error_class);
}

void Upcall::answer_quietly(int error_class) {
  result.error = error_class;
  memcpy(request_->outputs[0].data, &result, sizeof(result));
  offpath_upcall_request_t* const request = std::exchange(request_, nullptr);
  request->answer(request, OFFPATH_OK);
}

}  // namespace offpath::mpi::regions
