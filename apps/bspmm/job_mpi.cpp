// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include <cstring>

#include <mpi.h>

namespace bspmm::job {
namespace {

double reduce(double value, MPI_Op op) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, op, MPI_COMM_WORLD);
  return value;
}

}  // namespace

void start(int* argc, char*** argv) { MPI_Init(argc, argv); }
void stop() { MPI_Finalize(); }

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, "\n"));
}

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
double sum(double value) { return reduce(value, MPI_SUM); }
double maximum(double value) { return reduce(value, MPI_MAX); }

}  // namespace bspmm::job
