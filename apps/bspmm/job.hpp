// SPDX-License-Identifier: BSD-3-Clause
// The ranks of this run: job_mpi.cpp with MPI, job_shmem.cpp with OpenSHMEM.
#pragma once

#include <string>

namespace bspmm::job {

// Before and after everything else.
void start(int* argc, char*** argv);
void stop();

std::string library();  // name and version, one line
int rank();
int ranks();

// Collective.
void barrier();
double sum(double value);
double maximum(double value);

}  // namespace bspmm::job
