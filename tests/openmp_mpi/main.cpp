// SPDX-License-Identifier: BSD-3-Clause
// main <plugin> <regions> <case> <shared|staged> <seed>: runs the two sides of a case at the same time, the host's here
// and the region's, compiled against the device library, on another thread.
#include "cases.hpp"
#include "executor.hpp"

#include <dlfcn.h>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace {

Case* find(const NamedCase* cases, const char* name) {
  for (; cases->name != nullptr; ++cases) {
    if (strcmp(cases->name, name) == 0) return cases->run;
  }
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  // Opened before MPI_Init, as the OpenMP runtime does it.
  void* const plugin = strcmp(argv[1], "none") == 0 ? nullptr : dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* const regions = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (regions == nullptr) return fprintf(stderr, "%s\n", dlerror()), 2;
  using Cases = const NamedCase* (*)();
  Case* const host = find(offpath_cases(), argv[3]);
  Case* const region = find(reinterpret_cast<Cases>(dlsym(regions, "offpath_cases"))(), argv[3]);
  if (host == nullptr || region == nullptr) return 2;
  use_staging(strcmp(argv[4], "staged") == 0);
  const uint64_t seed = strtoull(argv[5], nullptr, 10);

  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Setting here{seed, 0, 0};
  Setting there{seed, 1, 0};
  std::thread device([&] { region(&there); });
  host(&here);
  const bool loses = strcmp(argv[3], "lost") == 0;
  if (loses) {
    while (unanswered() == 0) usleep(1000);
    lose_channel();
  }
  device.join();
  const int own = here.failures + there.failures;
  int all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf("%s\n", all == 0 ? "passed" : "failed");
  MPI_Finalize();
  (void)plugin;
  return all == 0 ? 0 : 1;
}
