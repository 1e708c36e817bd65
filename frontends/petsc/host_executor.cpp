// SPDX-License-Identifier: BSD-3-Clause
// Vector programs on the host: the kernels of the service, and MPI's nonblocking allreduce.
#include "kernels/vector_program.hpp"
#include "petsc/executor.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace offpath::petsc {
namespace {

std::vector<kernels::ScalarStep> steps_of(const offpath_scalar_step_t* steps, uint32_t count) {
  std::vector<kernels::ScalarStep> out;
  for (uint32_t i = 0; i < count; ++i) out.push_back({steps[i].op, steps[i].result, steps[i].left, steps[i].right});
  return out;
}

kernels::VectorProgram translate(const offpath_program_t& program) {
  kernels::VectorProgram out;
  out.rows = program.rows;
  out.scalars = program.scalars_count;
  out.vectors = program.vectors_count;
  out.before = steps_of(program.before, program.before_count);
  out.after = steps_of(program.after, program.after_count);
  for (uint32_t i = 0; i < program.statements_count; ++i) {
    const offpath_statement_t& from = program.statements[i];
    kernels::Statement& statement = out.statements.emplace_back();
    statement.kind = from.kind;
    statement.target = from.target;
    for (uint32_t k = 0; k < from.terms_count; ++k) {
      statement.terms.push_back({from.terms[k].scalar, from.terms[k].vector});
    }
  }
  return out;
}

struct Free {
  void operator()(void* memory) const { free(memory); }
};

class HostExecutor : public Executor {
 public:
  explicit HostExecutor(MPI_Comm comm) : comm_(comm) {}

  void* allocate(uint64_t bytes) override {
    memory_.emplace_back(calloc(std::max<uint64_t>(bytes, 1), 1));
    return memory_.back().get();
  }

  void release(void* gone) override {
    std::erase_if(memory_, [&](const auto& memory) { return memory.get() == gone; });
  }
  bool multiplies() const override { return false; }
  bool offloads() const override { return false; }
  uint64_t offset_of(const void*) const override { return 0; }

  PetscErrorCode post(const offpath_program_t& program, const offpath_crossing_t&) override {
    PetscFunctionBegin;
    PetscCheck(program.matrices_count == 0, PETSC_COMM_SELF, PETSC_ERR_PLIB, "the host multiplies by PETSc");
    scalars_ = program.scalars;
    after_ = steps_of(program.after, program.after_count);
    PetscCall(run_pass(program));
    if (program.reduce_count > 0) {
      PetscCallMPI(MPI_Iallreduce(MPI_IN_PLACE, program.scalars + program.reduce_first,
                                  static_cast<int>(program.reduce_count), MPI_DOUBLE, MPI_SUM, comm_, &request_));
    }
    PetscFunctionReturn(0);
  }

  PetscErrorCode wait() override {
    PetscFunctionBegin;
    PetscCallMPI(MPI_Wait(&request_, MPI_STATUS_IGNORE));
    kernels::run_scalar_steps(after_, scalars_);
    after_.clear();
    PetscFunctionReturn(0);
  }

  std::string describe() const override { return "this process (no service)"; }

 private:
  MPI_Comm comm_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  double* scalars_ = nullptr;
  std::vector<kernels::ScalarStep> after_;
  std::vector<std::unique_ptr<void, Free>> memory_;
};

}  // namespace

PetscErrorCode run_pass(const offpath_program_t& program) {
  PetscFunctionBegin;
  kernels::VectorProgram vector = translate(program);
  PetscCheck(kernels::check(vector).ok(), PETSC_COMM_SELF, PETSC_ERR_PLIB, "%s", kernels::check(vector).text());
  std::vector<uint8_t*> arrays{reinterpret_cast<uint8_t*>(program.scalars)};
  for (uint32_t i = 0; i < program.vectors_count; ++i) {
    arrays.push_back(reinterpret_cast<uint8_t*>(program.vectors[i]));
  }
  const base::Status status = kernels::run_alone(*kernels::make_pass(std::move(vector)), arrays);
  PetscCheck(status.ok(), PETSC_COMM_SELF, PETSC_ERR_MEM, "%s", status.text());
  PetscFunctionReturn(0);
}

std::unique_ptr<Executor> make_host_executor(MPI_Comm comm) { return std::make_unique<HostExecutor>(comm); }

}  // namespace offpath::petsc
