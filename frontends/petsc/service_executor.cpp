// SPDX-License-Identifier: BSD-3-Clause
// Vector programs handed to the node's service.
#include "petsc/executor.hpp"
#include "petsc/job.hpp"

#include <algorithm>
#include <vector>

namespace offpath::petsc {
namespace {

constexpr uint64_t kProgressNs = 1000000;  // other ranks may need MPI's help to get as far as this one

class ServiceExecutor : public Executor {
 public:
  ServiceExecutor(MPI_Comm comm, offpath_team_t* team) : comm_(comm), team_(team) {}
  ~ServiceExecutor() override {
    for (offpath_op_t* op : ops_) {
      offpath_op_wait(op, UINT64_MAX);  // it writes to the memory
      offpath_op_free(op);
    }
    // After PetscFinalize has detached, team and memory are gone already.
    if (job_session() == nullptr) return;
    offpath_team_destroy(team_);
    for (void* memory : memory_) offpath_memory_free(job_session(), memory);
  }

  void* allocate(uint64_t bytes) override {
    void* memory = nullptr;
    if (offpath_memory_allocate(job_session(), std::max<uint64_t>(bytes, 1), &memory) != OFFPATH_OK) return nullptr;
    memory_.push_back(memory);
    return memory;
  }

  void release(void* memory) override {
    offpath_memory_free(job_session(), memory);
    std::erase(memory_, memory);
  }
  bool multiplies() const override { return true; }
  bool offloads() const override { return true; }
  bool shares_memory() const override { return offpath_session_shares_memory(job_session()) != 0; }
  uint64_t offset_of(const void*) const override { return 0; }

  PetscErrorCode post(const offpath_program_t& program, const offpath_crossing_t& crossing) override {
    PetscFunctionBegin;
    offpath_op_t* op = nullptr;
    PetscCall(succeed(offpath_program_crossing(team_, &program, &crossing, &op)));
    ops_.push_back(op);
    PetscFunctionReturn(0);
  }

  PetscErrorCode wait() override {
    PetscFunctionBegin;
    offpath_status_t first = OFFPATH_OK;
    for (offpath_op_t* op : ops_) {
      offpath_status_t status;
      while ((status = offpath_op_wait(op, kProgressNs)) == OFFPATH_IN_PROGRESS) PetscCall(progress(comm_));
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
    if (job_session() == nullptr || offpath_session_counters(job_session(), &counters) != OFFPATH_OK)
      return "the service";
    const std::string where = shares_memory() ? "this node" : "this node's DPU, where the vectors stay";
    return "the service of " + where + " (process " + std::to_string(counters.service_pid) + ", " +
           std::to_string(counters.service_workers_count) + " worker(s), " +
           std::to_string(counters.service_helpers_count) + " helper(s), team on " +
           std::to_string(offpath_team_nodes(team_)) + " node(s))";
  }

 private:
  static PetscErrorCode succeed(offpath_status_t status) {
    PetscFunctionBegin;
    PetscCheck(status == OFFPATH_OK, PETSC_COMM_SELF, PETSC_ERR_LIB,
               "Offpath: vector operations of the solver failed: %s (the vectors are half updated). This solver has "
               "no service any more; one that all ranks make anew does without. OFFPATH_SERVICE_LOG=FILE keeps the "
               "service's last words",
               offpath_status_string(status));
    PetscFunctionReturn(0);
  }

  MPI_Comm comm_;
  offpath_team_t* team_;
  std::vector<offpath_op_t*> ops_;
  std::vector<void*> memory_;
};

}  // namespace

PetscErrorCode make_service_executor(MPI_Comm comm, std::unique_ptr<Executor>* executor, std::string* reason) {
  PetscFunctionBegin;
  offpath_team_t* team = nullptr;
  PetscCall(make_team(comm, &team, reason));
  if (team != nullptr) *executor = std::make_unique<ServiceExecutor>(comm, team);
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
