// SPDX-License-Identifier: BSD-3-Clause
#include "session.hpp"

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include <dlfcn.h>
#include <mpi.h>
#include <sys/random.h>
#include <unistd.h>

#include "../kit/clocks.hpp"
#include "../kit/ranks.hpp"

namespace task_session {
namespace {

std::string beside_program(const std::string& library) {
  if (library.find('/') != std::string::npos) return library;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, length > 0 ? std::size_t(length) : 0);
  return program.substr(0, program.rfind('/') + 1) + library;
}

int ranks_of_node() {
  MPI_Comm node;
  int count = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &count);
  MPI_Comm_free(&node);
  return count;
}

// Of the services that communicate for the ranks already, if there are: tasks are those' then, too. Else a new one.
bool propose_token(std::uint8_t (&token)[OFFPATH_TOKEN_BYTES]) {
  const auto known = reinterpret_cast<int (*)(std::uint8_t*)>(dlsym(RTLD_DEFAULT, "offpath_frontend_job_token"));
  return (known != nullptr && known(token) != 0) || getrandom(token, sizeof token, 0) == sizeof token;
}

}  // namespace

Session::Session(const Function& function, std::string& problem) : program_(function.program) {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof params;
  if (kit::rank() == 0 && !propose_token(params.job_token))
    problem = "there are no random numbers (a job's token is one). Try again";
  MPI_Bcast(params.job_token, sizeof params.job_token, MPI_BYTE, 0, MPI_COMM_WORLD);
  params.node_sessions_count = std::uint32_t(ranks_of_node());
  if (kit::minimum(std::int64_t(params.node_sessions_count)) == kit::ranks()) params.flags = OFFPATH_ATTACH_NODE_ONLY;
  offpath_error_t error{};
  if (offpath_session_attach(&params, &session_, &error) == OFFPATH_OK) {
    const std::string library = beside_program(function.library);
    const offpath_function_params_t named{sizeof named, 0, library.c_str(), function.symbol, function.signature};
    if (offpath_function_register(session_, &named, &function_, &error) != OFFPATH_OK) problem = error.text;
  } else {
    problem = error.text;
  }
  if (all_good(problem)) meet(problem);
}

// Services of a team's ranks know of each other, so that tasks can go from one to another.
void Session::meet(std::string& problem) {
  std::vector<std::uint8_t> addresses(std::size_t(kit::ranks()) * OFFPATH_ADDRESS_MAX_BYTES);
  offpath_team_params_t params{};
  params.struct_bytes = sizeof params;
  params.size = std::uint32_t(kit::ranks());
  params.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES;
  params.addresses = addresses.data();
  params.rank = std::uint32_t(kit::rank());
  if (kit::rank() == 0 && getrandom(params.id, sizeof params.id, 0) != sizeof params.id)
    problem = "there are no random numbers (a team's name is one). Try again";
  MPI_Bcast(params.id, sizeof params.id, MPI_BYTE, 0, MPI_COMM_WORLD);
  std::size_t length = 0;
  std::uint8_t mine[OFFPATH_ADDRESS_MAX_BYTES] = {};
  offpath_session_address(session_, mine, sizeof mine, &length);
  MPI_Allgather(mine, sizeof mine, MPI_BYTE, addresses.data(), sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
  offpath_error_t error{};
  if (problem.empty() && offpath_team_create(session_, &params, &team_, &error) != OFFPATH_OK) problem = error.text;
  all_good(problem);
}

bool Session::all_good(std::string& problem) {
  int good = problem.empty();
  MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!good && problem.empty()) problem = "another rank has no executor for its tasks. See what it says";
  return good != 0;
}

Session::Session(Session&& other) noexcept
    : program_(other.program_),
      session_(std::exchange(other.session_, nullptr)),
      team_(std::exchange(other.team_, nullptr)),
      function_(other.function_),
      ops_(std::move(other.ops_)) {}

Session::~Session() {
  if (!session_) return;
  if (team_) MPI_Barrier(MPI_COMM_WORLD);  // others' tasks may be here
  offpath_team_destroy(team_);
  offpath_session_detach(session_);
}

void Session::give_up(const char* what, const char* how) const {
  std::fprintf(stderr, "%s: %s: %s\n", program_, what, how);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

bool Session::idle() const {
  return std::all_of(ops_.begin(), ops_.end(),
                     [](offpath_op_t* op) { return offpath_op_test(op) != OFFPATH_IN_PROGRESS; });
}

void* Session::allocate(std::size_t bytes) {
  void* memory = nullptr;
  const offpath_status_t status = offpath_memory_allocate(session_, bytes, &memory);
  if (status != OFFPATH_OK) give_up("there is no memory to share", offpath_status_string(status));
  return memory;
}

void Session::post(const void* argument, std::size_t bytes, const offpath_task_range_t* ranges,
                   std::size_t ranges_count, std::uint64_t cost_ns, std::uint32_t flags) {
  offpath_task_params_t params{};
  params.struct_bytes = sizeof params;
  params.flags = flags;
  params.function = function_;
  params.argument = argument;
  params.argument_bytes = bytes;
  params.ranges = ranges;
  params.ranges_count = std::uint32_t(ranges_count);
  params.cost_ns = cost_ns;
  offpath_op_t* op = nullptr;
  const offpath_status_t status = offpath_task_submit(session_, &params, &op);
  if (status != OFFPATH_OK) give_up("a task was not accepted", offpath_status_string(status));
  ops_.push_back(op);
}

void Session::note_wait(bool begins) {
  const auto now = std::uint64_t(kit::now_ns());
  if (begins) waits_since_ns_ = now;
  offpath_session_note_wait(session_, waits_since_ns_, begins ? 0 : now);
}

double Session::wait() {
  std::uint64_t run_ns = 0;
  for (offpath_op_t* op : ops_) {
    if (offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK) {
      char text[256] = "";
      offpath_op_describe(op, text, sizeof text);
      give_up("a task failed", text);
    }
    offpath_task_result_t result{};
    result.struct_bytes = sizeof result;
    if (offpath_task_result(op, &result) == OFFPATH_OK) run_ns += result.run_ns;
    executor_ = result.executor;
    offpath_op_free(op);
  }
  ops_.clear();
  return 1e-9 * double(run_ns);
}

}  // namespace task_session
