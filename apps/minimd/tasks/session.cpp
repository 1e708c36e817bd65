// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <mpi.h>
#include <sys/random.h>
#include <unistd.h>

namespace minimd {
namespace {

[[noreturn]] void give_up(const char* what, const char* how) {
  std::fprintf(stderr, "minimd: %s: %s\n", what, how);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

// Beside this program.
std::string library_of_functions() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, length > 0 ? std::size_t(length) : 0);
  return program.substr(0, program.rfind('/') + 1) + "libminimd_forces.so";
}

int ranks_of_node() {
  MPI_Comm node;
  int count = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &count);
  MPI_Comm_free(&node);
  return count;
}

}  // namespace

TaskSession::TaskSession(std::string& problem) {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof params;
  params.flags = OFFPATH_ATTACH_NODE_ONLY;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && getrandom(params.job_token, sizeof params.job_token, 0) != sizeof params.job_token)
    problem = "there are no random numbers (a job's token is one). Try again";
  MPI_Bcast(params.job_token, sizeof params.job_token, MPI_BYTE, 0, MPI_COMM_WORLD);
  params.node_sessions_count = std::uint32_t(ranks_of_node());
  offpath_error_t error{};
  if (offpath_session_attach(&params, &session_, &error) != OFFPATH_OK) {
    problem = error.text;
    return;
  }
  const std::string library = library_of_functions();
  const offpath_function_params_t function{sizeof function, 0, library.c_str(), "minimd_forces", kForcesSignature};
  if (offpath_function_register(session_, &function, &function_, &error) != OFFPATH_OK) problem = error.text;
}

TaskSession::TaskSession(TaskSession&& other) noexcept
    : session_(std::exchange(other.session_, nullptr)), function_(other.function_), ops_(std::move(other.ops_)) {}

TaskSession::~TaskSession() {
  if (session_) offpath_session_detach(session_);
}

void TaskSession::submit(const ForcesArgument& argument, const offpath_task_range_t* ranges) {
  offpath_task_params_t params{};
  params.struct_bytes = sizeof params;
  params.function = function_;
  params.argument = &argument;
  params.argument_bytes = sizeof argument;
  params.ranges = ranges;
  params.ranges_count = kForcesRanges;
  offpath_op_t* op = nullptr;
  const offpath_status_t status = offpath_task_submit(session_, &params, &op);
  if (status != OFFPATH_OK) give_up("a task was not accepted", offpath_status_string(status));
  ops_.push_back(op);
}

void TaskSession::wait() {
  for (offpath_op_t* op : ops_) {
    if (offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK) {
      char text[256] = "";
      offpath_op_describe(op, text, sizeof text);
      give_up("a task failed", text);
    }
    offpath_op_free(op);
  }
  ops_.clear();
}

void* TaskSession::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const offpath_status_t status = offpath_memory_allocate(session_, bytes, &memory);
  if (status != OFFPATH_OK) give_up("there is no memory to share", offpath_status_string(status));
  return memory;
}

}  // namespace minimd
