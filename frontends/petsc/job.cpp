// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/job.hpp"

#include "attach/loss.hpp"
#include "attach/nodes.hpp"
#include "attach/statistics.hpp"
#include "base/random.hpp"

#include <cstdio>
#include <vector>

namespace offpath::petsc {
namespace {

struct Job {
  bool open = false;
  attach::Terms terms{};
  std::string cores;  // of the service
  PetscMPIInt node = 0;
  attach::Surroundings around{};
  std::string no_service;  // why there can be none; empty: not known yet
  offpath_session_t* session = nullptr;
  attach::Settings settings;
  uint64_t offloaded_count = 0, native_count = 0;  // programs of solvers
  std::string why_host;
};
Job job;

attach::Loss own_loss() { return attach::loss_of(attach::host_name().data(), attach::counters_of(job.session)); }

PetscErrorCode write_statistics() {
  PetscFunctionBegin;
  PetscMPIInt rank, size;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  const uint64_t claim = attach::claim_on_statistics(job.settings);
  std::vector<uint64_t> claims(static_cast<size_t>(size));
  PetscCallMPI(MPI_Allgather(&claim, 1, MPI_UINT64_T, claims.data(), 1, MPI_UINT64_T, PETSC_COMM_WORLD));
  const int keeper = attach::keeper_of(claims);
  if (keeper < 0) PetscFunctionReturn(0);
  attach::JsonObject line = attach::statistics_of(rank, size, "petsc", job.why_host);
  line.number("offloaded_count", job.offloaded_count).number("native_count", job.native_count);
  const offpath_session_counters_t service = attach::counters_of(job.session);
  line.number("completed_count", service.completed_count).number("failed_count", service.failed_count);
  attach::add_service(service, &line);
  if (job.session != nullptr && offpath_session_alive(job.session) == 0) attach::add_loss(own_loss(), &line);
  line.object("collectives", attach::JsonObject().object(
                                 "program", attach::offloaded_and_native(job.offloaded_count, job.native_count)));
  const attach::StatisticsRecord own = attach::record_of(line);
  std::vector<attach::StatisticsRecord> all(rank == keeper ? static_cast<size_t>(size) : 0);
  PetscCallMPI(MPI_Gather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, keeper, PETSC_COMM_WORLD));
  if (rank == keeper) attach::append_records(job.settings, all);
  PetscFunctionReturn(0);
}

PetscErrorCode close_job() {
  PetscFunctionBegin;
  PetscCall(write_statistics());
  PetscCallMPI(MPI_Barrier(PETSC_COMM_WORLD));  // a service that ends fails the programs of ranks that are not done
  offpath_session_detach(job.session);
  job = {};
  PetscFunctionReturn(0);
}

attach::Attachment own_attachment() {
  attach::Attachment own{};
  own.error.status = OFFPATH_ERR_NO_SERVICE;
  if (job.session != nullptr && offpath_session_alive(job.session) == 0) job.no_service = own_loss().problem;
  if (job.no_service.empty() && job.session == nullptr) {
    own = attach::open_session(job.terms, job.cores, job.around, &job.session);
    if (own.error.status != OFFPATH_OK) job.no_service = own.error.text;
  } else if (job.no_service.empty()) {
    size_t bytes = 0;
    own.error.status = offpath_session_address(job.session, own.address.data(), own.address.size(), &bytes);
  }
  snprintf(own.error.text, sizeof(own.error.text), "%s", job.no_service.c_str());
  return own;
}

}  // namespace

PetscErrorCode open_job() {
  PetscFunctionBegin;
  if (job.open) PetscFunctionReturn(0);
  PetscMPIInt rank, size;
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &size));
  const auto settings = job.settings = attach::Settings::from_environment();
  if (rank == 0) job.terms.propose(settings);
  PetscCallMPI(MPI_Bcast(&job.terms, sizeof(job.terms), MPI_BYTE, 0, PETSC_COMM_WORLD));
  const attach::NodeRecord own = attach::own_node();
  std::vector<attach::NodeRecord> records(static_cast<size_t>(size));
  PetscCallMPI(MPI_Allgather(&own, sizeof(own), MPI_BYTE, records.data(), sizeof(own), MPI_BYTE, PETSC_COMM_WORLD));
  const attach::Nodes nodes(records);
  job.node = static_cast<PetscMPIInt>(nodes.of(rank));
  job.around = nodes.around(rank);
  const auto cores = attach::choose_cores(job.terms, settings, records, nodes, rank, "ranks");
  if (cores.ok()) {
    job.cores = cores.value().list;
  } else {
    job.no_service = cores.status().text();
  }
  job.open = true;
  PetscCall(PetscRegisterFinalize(close_job));
  PetscFunctionReturn(0);
}

bool job_is_open() { return job.open; }

void count_program(bool offloaded) { ++(offloaded ? job.offloaded_count : job.native_count); }

void note_host(const std::string& reason) { job.why_host = reason; }

PetscMPIInt job_node() { return job.node; }

offpath_session_t* job_session() { return job.session; }

PetscErrorCode make_team(MPI_Comm comm, offpath_team_t** team, std::string* reason) {
  PetscFunctionBegin;
  *team = nullptr;
  PetscMPIInt rank, size;
  PetscCallMPI(MPI_Comm_rank(comm, &rank));
  PetscCallMPI(MPI_Comm_size(comm, &size));
  const attach::Attachment own = own_attachment();
  std::vector<attach::Attachment> all(static_cast<size_t>(size));
  PetscCallMPI(MPI_Allgather(&own, sizeof(own), MPI_BYTE, all.data(), sizeof(own), MPI_BYTE, comm));
  offpath_team_params_t params{};
  base::fill_random(params.id, sizeof(params.id));
  PetscCallMPI(MPI_Bcast(params.id, sizeof(params.id), MPI_BYTE, 0, comm));
  std::vector<std::array<std::byte, OFFPATH_ADDRESS_MAX_BYTES>> addresses;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].error.status != OFFPATH_OK) {
      *reason = "rank " + std::to_string(i) + ": " + all[i].error.text;
      PetscFunctionReturn(0);
    }
    addresses.push_back(all[i].address);
  }
  params.struct_bytes = sizeof(params);
  params.rank = static_cast<uint32_t>(rank);
  params.size = static_cast<uint32_t>(size);
  params.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES;
  params.addresses = addresses.data();
  offpath_error_t error{};
  const int made = offpath_team_create(job.session, &params, team, &error) == OFFPATH_OK ? 1 : 0;
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
