// SPDX-License-Identifier: BSD-3-Clause
// The ranks of a job: ranks_mpi.cpp with MPI, ranks_shmem.cpp with OpenSHMEM.
#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"

namespace kit {

enum class Threads { one, serialized, multiple };  // that call the library

// Before and after everything else.
void start(int* argc, char*** argv, Threads threads);
void stop();

std::string library();  // name and version, one line
int rank();
int ranks();

// Collective.
void barrier();
double sum(double value);
double maximum(double value);
std::int64_t sum(std::int64_t value);
std::int64_t maximum(std::int64_t value);
bool first_of_node();  // the lowest rank on its node
template <class Number>
Number minimum(Number value) {
  return -maximum(-value);
}
inline double mean(double value) { return sum(value) / ranks(); }

// A value of each rank.
struct OverRanks {
  double avg, min, max;
};
inline OverRanks over_ranks(double value) { return {mean(value), minimum(value), maximum(value)}; }

// A program of several ranks, from its command line to its exit status. The first one speaks for all.
template <class Options>
int run_ranks(int argc, char** argv, int (*program)(const Options&), Threads threads = Threads::one) {
  start(&argc, &argv, threads);
  int status = 0;
  {
    Options options;
    const auto ended = options.read(argc, argv, rank() == 0);
    status = ended ? *ended : program(options);
  }
  stop();
  return status;
}

}  // namespace kit
