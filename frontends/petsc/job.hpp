// SPDX-License-Identifier: BSD-3-Clause
// Job: this process's attachment to its node's service, made by the first solver that wants one and let go of at
// PetscFinalize, and teams of ranks that have one.
//
// Threads: PETSc's. Errors: PETSc's; why there is no service is a text, not an error.
#pragma once

#include <offpath/offpath.h>
#include <petscsys.h>

#include <string>

namespace offpath::petsc {

// Collective over PETSC_COMM_WORLD: agrees on what makes the job's processes find the same service, on its cores, and
// on who shares a node.
PetscErrorCode open_job();
bool job_is_open();  // not after PetscFinalize
// The number of this process's node, the same for all that one service can serve.
PetscMPIInt job_node();
// Null before make_team() succeeded, and after PetscFinalize.
offpath_session_t* job_session();
// Collective. A team of the communicator's ranks in their order; null on all of them, with the reason, when one cannot
// have a service. Blocks until the services are up or known not to be.
PetscErrorCode make_team(MPI_Comm comm, offpath_team_t** team, std::string* reason);

// For the line of OFFPATH_STATS_FILE: a solver's program went to the service, or was done here; and why.
void count_program(bool offloaded);
void note_host(const std::string& reason);

}  // namespace offpath::petsc
