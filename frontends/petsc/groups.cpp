// SPDX-License-Identifier: BSD-3-Clause
#include "petsc/groups.hpp"

#include "petsc/job.hpp"

#include <algorithm>

namespace offpath::petsc {

PetscErrorCode Groups::make(MPI_Comm comm, PetscInt leaders_per_node) {
  PetscFunctionBegin;
  MPI_Comm node;
  PetscMPIInt ranks, on_node;
  PetscCallMPI(MPI_Comm_split(comm, job_node(), 0, &node));
  PetscCallMPI(MPI_Comm_size(node, &ranks));
  PetscCallMPI(MPI_Comm_rank(node, &on_node));
  const PetscInt number = on_node * std::min<PetscInt>(leaders_per_node, ranks) / ranks;
  PetscCallMPI(MPI_Comm_split(node, static_cast<PetscMPIInt>(number), 0, &group));
  PetscCallMPI(MPI_Comm_free(&node));
  PetscCallMPI(MPI_Comm_rank(group, &rank));
  PetscCallMPI(MPI_Comm_size(group, &size));
  PetscCallMPI(MPI_Comm_split(comm, leads() ? 0 : MPI_UNDEFINED, 0, &leaders));
  PetscFunctionReturn(0);
}

PetscErrorCode Groups::free() {
  PetscFunctionBegin;
  if (leaders != MPI_COMM_NULL) PetscCallMPI(MPI_Comm_free(&leaders));
  if (group != MPI_COMM_NULL) PetscCallMPI(MPI_Comm_free(&group));
  PetscFunctionReturn(0);
}

}  // namespace offpath::petsc
