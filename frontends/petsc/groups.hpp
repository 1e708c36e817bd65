// SPDX-License-Identifier: BSD-3-Clause
// Groups: the ranks of each node divided among its leaders, who talk to the service. The first rank of a group leads.
#pragma once

#include <petscsys.h>

namespace offpath::petsc {

struct Groups {
  MPI_Comm group = MPI_COMM_NULL;
  MPI_Comm leaders = MPI_COMM_NULL;  // of all nodes, in the order of their ranks; null on those that do not lead
  PetscMPIInt rank = 0, size = 1;    // in the group

  bool leads() const { return rank == 0; }
  // Collective over `comm`: at most `leaders_per_node` groups on each node, of neighbouring ranks, equal but for one.
  PetscErrorCode make(MPI_Comm comm, PetscInt leaders_per_node);
  // Collective.
  PetscErrorCode free();
};

}  // namespace offpath::petsc
