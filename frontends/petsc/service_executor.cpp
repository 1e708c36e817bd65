// SPDX-License-Identifier: BSD-3-Clause
// Vector programs handed to the node's service.
#include "base/random.hpp"
#include "executor.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <vector>

namespace offpath::petsc {
namespace {

using Address = std::array<uint8_t, OFFPATH_ADDRESS_MAX_BYTES>;

// This process's attachment: made by the first solver that wants one, let go of at PetscFinalize.
struct Job {
  bool open = false;
  uint8_t token[OFFPATH_TOKEN_BYTES] = {};
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
};
Job job;

PetscErrorCode close_job() {
  PetscFunctionBegin;
  offpath_session_detach(job.session);
  job = {};
  PetscFunctionReturn(0);
}

bool attach() {
  if (job.session != nullptr) return offpath_session_alive(job.session) == 1;
  if (!job.open || job.error.status != OFFPATH_OK) return false;
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  memcpy(params.job_token, job.token, sizeof(job.token));
  return offpath_session_attach(&params, &job.session, &job.error) == OFFPATH_OK;
}

class ServiceExecutor : public Executor {
 public:
  explicit ServiceExecutor(offpath_team_t* team) : team_(team) {}
  ~ServiceExecutor() override {
    for (offpath_op_t* op : ops_) {
      offpath_op_wait(op, UINT64_MAX);  // it writes to the memory
      offpath_op_free(op);
    }
    // After PetscFinalize has detached, team and memory are gone already.
    if (job.session == nullptr) return;
    offpath_team_destroy(team_);
    for (void* memory : memory_) offpath_memory_free(job.session, memory);
  }

  void* allocate(uint64_t bytes) override {
    void* memory = nullptr;
    if (offpath_memory_allocate(job.session, std::max<uint64_t>(bytes, 1), &memory) != OFFPATH_OK) return nullptr;
    memory_.push_back(memory);
    return memory;
  }

  void release(void* memory) override {
    offpath_memory_free(job.session, memory);
    std::erase(memory_, memory);
  }
  bool multiplies() const override { return true; }

  PetscErrorCode post(const offpath_program_t& program) override {
    PetscFunctionBegin;
    offpath_op_t* op = nullptr;
    PetscCall(succeed(offpath_program(team_, &program, &op)));
    ops_.push_back(op);
    PetscFunctionReturn(0);
  }

  PetscErrorCode wait() override {
    PetscFunctionBegin;
    offpath_status_t first = OFFPATH_OK;
    for (offpath_op_t* op : ops_) {
      const offpath_status_t status = offpath_op_wait(op, UINT64_MAX);
      if (first == OFFPATH_OK) first = status;
      offpath_op_free(op);
    }
    ops_.clear();
    PetscCall(succeed(first));
    PetscFunctionReturn(0);
  }

  std::string describe() const override {
    offpath_session_counters_t counters{};
    counters.struct_bytes = sizeof(counters);
    if (job.session == nullptr || offpath_session_counters(job.session, &counters) != OFFPATH_OK) return "the service";
    return "the service of this node (process " + std::to_string(counters.service_pid) + ", " +
           std::to_string(counters.service_workers_count) + " worker(s), team on " +
           std::to_string(offpath_team_nodes(team_)) + " node(s))";
  }

 private:
  static PetscErrorCode succeed(offpath_status_t status) {
    PetscFunctionBegin;
    PetscCheck(status == OFFPATH_OK, PETSC_COMM_SELF, PETSC_ERR_LIB,
               "Offpath: vector operations of the solver failed: %s (the vectors are half updated). Solve again; "
               "OFFPATH_SERVICE_LOG=FILE keeps the service's last words",
               offpath_status_string(status));
    PetscFunctionReturn(0);
  }

  offpath_team_t* team_;
  std::vector<offpath_op_t*> ops_;
  std::vector<void*> memory_;
};

// What a rank tells the others.
struct Word {
  int32_t attached = 0;
  char reason[252] = {};
  Address address{};
};

}  // namespace

PetscErrorCode open_job() {
  PetscFunctionBegin;
  if (job.open) PetscFunctionReturn(0);
  base::fill_random(job.token, sizeof(job.token));
  PetscCallMPI(MPI_Bcast(job.token, sizeof(job.token), MPI_BYTE, 0, PETSC_COMM_WORLD));
  job.open = true;
  PetscCall(PetscRegisterFinalize(close_job));
  PetscFunctionReturn(0);
}

PetscErrorCode make_service_executor(MPI_Comm comm, std::unique_ptr<Executor>* executor, std::string* reason) {
  PetscFunctionBegin;
  PetscMPIInt rank, size;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  Word own;
  size_t bytes = 0;
  own.attached =
      attach() && offpath_session_address(job.session, own.address.data(), own.address.size(), &bytes) == OFFPATH_OK;
  snprintf(own.reason, sizeof(own.reason), "%s",
           job.session != nullptr ? "the service of its node was lost" : job.error.text);
  std::vector<Word> words(static_cast<size_t>(size));
  PetscCallMPI(MPI_Allgather(&own, sizeof(own), MPI_BYTE, words.data(), sizeof(own), MPI_BYTE, comm));
  offpath_team_params_t params{};
  base::fill_random(params.id, sizeof(params.id));
  PetscCallMPI(MPI_Bcast(params.id, sizeof(params.id), MPI_BYTE, 0, comm));
  std::vector<Address> addresses;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].attached == 0) {
      *reason = "rank " + std::to_string(i) + ": " + words[i].reason;
      PetscFunctionReturn(0);
    }
    addresses.push_back(words[i].address);
  }
  params.struct_bytes = sizeof(params);
  params.rank = static_cast<uint32_t>(rank);
  params.size = static_cast<uint32_t>(size);
  params.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES;
  params.addresses = addresses.data();
  offpath_team_t* team = nullptr;
  offpath_error_t error{};
  const int made = offpath_team_create(job.session, &params, &team, &error) == OFFPATH_OK ? 1 : 0;
  int all = 0;
  PetscCallMPI(MPI_Allreduce(&made, &all, 1, MPI_INT, MPI_MIN, comm));
  if (all == 1) {
    *executor = std::make_unique<ServiceExecutor>(team);
  } else {
    *reason = made == 1 ? "a rank cannot make its end of a team" : error.text;
    offpath_team_destroy(team);
  }
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
