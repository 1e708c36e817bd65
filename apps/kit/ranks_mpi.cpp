// SPDX-License-Identifier: BSD-3-Clause
#include "ranks.hpp"

#include <cstring>

#include <mpi.h>

namespace kit {
namespace {

template <class Number>
Number reduce(Number value, MPI_Datatype type, MPI_Op op) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, type, op, MPI_COMM_WORLD);
  return value;
}

int rank_in(MPI_Comm communicator) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  return rank;
}

}  // namespace

void start(int* argc, char*** argv, Threads threads) {
  const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
  int level = 0;
  MPI_Init_thread(argc, argv, levels[int(threads)], &level);
}
void stop() { MPI_Finalize(); }

std::string library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, "\n"));
}

int rank() { return rank_in(MPI_COMM_WORLD); }
int ranks() {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  return ranks;
}

void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
double sum(double value) { return reduce(value, MPI_DOUBLE, MPI_SUM); }
double maximum(double value) { return reduce(value, MPI_DOUBLE, MPI_MAX); }
std::int64_t sum(std::int64_t value) { return reduce(value, MPI_INT64_T, MPI_SUM); }
std::int64_t maximum(std::int64_t value) { return reduce(value, MPI_INT64_T, MPI_MAX); }

bool first_of_node() {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  const bool first = rank_in(node) == 0;
  MPI_Comm_free(&node);
  return first;
}

}  // namespace kit
