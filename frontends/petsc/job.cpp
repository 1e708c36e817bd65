// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/job.hpp"

#include "attach/joining.hpp"
#include "attach/statistics.hpp"
#include "base/random.hpp"

#include <array>
#include <cstdio>
#include <memory>
#include <vector>

namespace offpath::petsc {
namespace {

struct Job {
  bool open = false;
  attach::Terms terms{};
  attach::Membership member{"rank"};
  attach::Settings settings;
  uint64_t offloaded_count = 0, native_count = 0;  // programs of solvers
  std::string why_host;
};
Job job;

class CommExchange final : public attach::Exchange {
 public:
  explicit CommExchange(MPI_Comm comm)
      : Exchange(ask(MPI_Comm_rank, comm), ask(MPI_Comm_size, comm), "an MPI collective failed"), comm_(comm) {}

 private:
  static int ask(int (*function)(MPI_Comm, int*), MPI_Comm comm) {
    int answer = 0;
    function(comm, &answer);
    return answer;
  }
  bool broadcast_bytes(void* record, size_t bytes) const override {
    return MPI_Bcast(record, static_cast<int>(bytes), MPI_BYTE, 0, comm_) == MPI_SUCCESS;
  }
  bool gather_bytes(const void* record, size_t bytes, void* all) const override {
    const int count = static_cast<int>(bytes);
    return MPI_Allgather(record, count, MPI_BYTE, all, count, MPI_BYTE, comm_) == MPI_SUCCESS;
  }
  bool gather_parts(const void* own, const Parts& parts, void* all) const override {
    const int bytes = parts.bytes[static_cast<size_t>(rank())];
    return MPI_Allgatherv(own, bytes, MPI_BYTE, all, parts.bytes.data(), parts.begins.data(), MPI_BYTE, comm_) ==
           MPI_SUCCESS;
  }

  MPI_Comm comm_;
};

void write_statistics() {
  const CommExchange world(PETSC_COMM_WORLD);
  attach::JsonObject line = attach::statistics_of(world.rank(), world.size(), "petsc", job.why_host);
  line.number("offloaded_count", job.offloaded_count).number("native_count", job.native_count);
  const offpath_session_counters_t service = attach::counters_of(job.member.session());
  line.number("completed_count", service.completed_count).number("failed_count", service.failed_count);
  attach::add_service(job.member.session(), service, &line);
  if (job.member.session() != nullptr && !job.member.alive()) attach::add_loss(job.member.loss(), &line);
  line.object("collectives", attach::JsonObject().object(
                                 "program", attach::offloaded_and_native(job.offloaded_count, job.native_count)));
  attach::write_statistics(world, job.settings, line);
}

PetscErrorCode close_job() {
  PetscFunctionBegin;
  write_statistics();
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));  // a service that ends fails the programs of ranks that are not done
  job.member.detach();
  std::destroy_at(&job);  // a program may begin another one
  std::construct_at(&job);
  PetscFunctionReturn(0);
}

}  // namespace

PetscErrorCode open_job() {
  PetscFunctionBegin;
  if (job.open) PetscFunctionReturn(0);
  const CommExchange world(PETSC_COMM_WORLD);
  job.settings = attach::Settings::from_environment();
  if (world.rank() == 0) job.terms.propose(job.settings);
  attach::NodeRecords records;
  PetscCheck(world.broadcast(&job.terms) && job.member.meet(world, &records), PETSC_COMM_SELF, PETSC_ERR_LIB,
             "The ranks could not tell each other where they are");
  job.member.choose_cores(job.terms, job.settings, records);  // why there are none is told with the first team
  job.open = true;
  PetscCall(PetscRegisterFinalize(close_job));
  PetscFunctionReturn(0);
}

bool job_is_open() { return job.open; }

void count_program(bool offloaded) { ++(offloaded ? job.offloaded_count : job.native_count); }

void note_host(const std::string& reason) { job.why_host = reason; }

PetscMPIInt job_node() { return job.open ? static_cast<PetscMPIInt>(job.member.nodes().of(job.member.rank())) : 0; }

offpath_session_t* job_session() { return job.member.session(); }

PetscErrorCode make_team(MPI_Comm comm, offpath_team_t** team, std::string* reason) {
  PetscFunctionBegin;
  *team = nullptr;
  const CommExchange ranks(comm);
  attach::Directory members;
  *reason = job.member.attach(job.terms, ranks, &members);
  if (!reason->empty()) PetscFunctionReturn(0);
  std::array<uint8_t, OFFPATH_TEAM_ID_BYTES> id;
  base::fill_random(id.data(), id.size());
  PetscCheck(ranks.broadcast(&id), comm, PETSC_ERR_LIB, "The ranks could not agree on a team");
  offpath_error_t error{};
  const bool created = attach::create_team(job.member.session(), id, ranks.rank(), members, team, &error) == OFFPATH_OK;
  const int made = created ? 1 : 0;
  int everywhere = 0;
  PetscCallMPI(MPI_Allreduce(&made, &everywhere, 1, MPI_INT, MPI_MIN, comm));
  if (everywhere == 0) {
    *reason = made == 1 ? "a rank cannot make its end of a team" : error.text;
    offpath_team_destroy(*team);
    *team = nullptr;
  }
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
