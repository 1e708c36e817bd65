// SPDX-License-Identifier: BSD-3-Clause
#include "base/local_ranks.hpp"

#include "base/environment.hpp"
#include "base/process.hpp"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

namespace offpath::base {
namespace {

// What launchers call a rank, and the number of ranks on its node. The innermost first: torchrun may run below another.
struct Names {
  const char* rank;
  const char* count;
};
constexpr Names kNames[] = {{"RANK", "LOCAL_WORLD_SIZE"},
                            {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
                            {"PMI_RANK", "MPI_LOCALNRANKS"},
                            {"SLURM_PROCID", "SLURM_STEP_ID"}};  // the latter says only that it is a step's

const Names* own_names() {
  for (const Names& names : kNames) {
    if (!Environment::text(names.rank).empty() && !Environment::text(names.count).empty()) return &names;
  }
  return nullptr;
}

size_t count_said(const Names& names) {
  const bool counted = strcmp(names.rank, "SLURM_PROCID") != 0;
  return counted ? std::min<size_t>(strtoul(Environment::text(names.count).c_str(), nullptr, 10), kMaxCores) : 0;
}

// As it was executed: a process that the launcher has only forked yet, and not bound, has no rank.
bool has_rank(pid_t process, const char* variable) {
  const std::string entry = std::string(1, '\0') + variable + '=';
  const std::string all = std::string(1, '\0') + text_of_file("/proc/" + std::to_string(process) + "/environ");
  return all.find(entry) != std::string::npos;
}

struct Ancestry {
  pid_t launcher;
  pid_t rank;  // the launcher's child that this process is, or comes from
};

Ancestry own_ancestry(const Names* names) {
  Ancestry found{getppid(), getpid()};
  while (names != nullptr && found.launcher > 1 && has_rank(found.launcher, names->rank)) {
    found.rank = found.launcher;
    const auto kin = kinship_of(found.launcher);
    found.launcher = kin ? kin->parent : 0;
  }
  return found;
}

std::vector<CoreSet> masks_of_others(const Names& names, const Ancestry& own) {
  std::vector<CoreSet> masks;
  for (const pid_t process : children_of(own.launcher)) {
    if (process == own.rank) continue;
    if (const CoreSet mask = affinity_of(process); mask.any() && has_rank(process, names.rank)) masks.push_back(mask);
  }
  return masks;
}

}  // namespace

CoreSet affinity_of(pid_t process) {
  cpu_set_t cores;
  return sched_getaffinity(process, sizeof(cores), &cores) == 0 ? core_set(cores) : CoreSet();
}

pid_t own_launcher() { return own_ancestry(own_names()).launcher; }

CoreSet own_allowed_cores() {
  const auto machine = static_cast<size_t>(sysconf(_SC_NPROCESSORS_ONLN));
  const size_t granted = strtoul(Environment::text("SLURM_CPUS_ON_NODE").c_str(), nullptr, 10);
  return allowed_cores(affinity_of(0), affinity_of(own_launcher()), machine, granted);
}

std::vector<CoreSet> local_rank_masks() {
  constexpr int kLooks = 200;
  constexpr timespec kBetween{0, 5'000'000};
  std::vector<CoreSet> masks{affinity_of(0)};
  const Names* const names = own_names();
  if (names == nullptr) return masks;
  const Ancestry own = own_ancestry(names);
  const size_t others = std::max<size_t>(count_said(*names), 1) - 1;
  std::vector<CoreSet> found = masks_of_others(*names, own);
  for (int look = 1; found.size() < others && look < kLooks; ++look) {
    nanosleep(&kBetween, nullptr);
    found = masks_of_others(*names, own);
  }
  masks.insert(masks.end(), found.begin(), found.end());
  if (found.size() < others) masks.insert(masks.end(), others - found.size(), own_allowed_cores());
  return masks;
}

}  // namespace offpath::base
