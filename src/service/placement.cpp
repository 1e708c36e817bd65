// SPDX-License-Identifier: BSD-3-Clause
#include "service/placement.hpp"

#include "base/cores.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace offpath::service {

using base::Status;

namespace {
// As the kernel's header has it, which may not be included together with <sched.h>.
struct SchedulerAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;
  uint64_t deadline_ns;
  uint64_t period_ns;
};
constexpr uint64_t kShortSliceNs = 100000;  // the least that the kernel grants

// Why the kernel refuses cores. What a job starts stays in the job's control group, also where it is meant for other cores.
Status refused(const std::string& cores, int number) {
  const cpu_set_t allowed = base::usable(base::every_core());
  const std::string list = base::ranges_of(allowed);
  if (CPU_COUNT(&allowed) == 0) {
    return Status::system_error(OFFPATH_ERR_ARGUMENT, number, "cannot run on cores %.60s", cores.c_str());
  }
  if (CPU_COUNT(&allowed) >= sysconf(_SC_NPROCESSORS_ONLN)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "cannot run on cores %.60s (this machine has %.60s). Name some of these",
                         cores.c_str(), list.c_str());
  }
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "cannot run on cores %.40s (its control group, like a job's, allows %.40s). Name some of these, "
                       "or start it outside",
                       cores.c_str(), list.c_str());
}
}  // namespace

void ask_for_short_slices() {
  SchedulerAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = kShortSliceNs;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

uint32_t count_cores(const std::string& cores) {
  const auto named = base::cores_in(cores);
  return named ? static_cast<uint32_t>(CPU_COUNT(&*named)) : 0;
}

Status bind_this_thread(const std::string& cores) {
  if (cores.empty()) return {};
  const auto named = base::cores_in(cores);
  if (!named) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "'%.60s' is not a list of cores. Write it like 2,3 or 4-7",
                         cores.c_str());
  }
  return sched_setaffinity(0, sizeof(*named), &*named) == 0 ? Status() : refused(cores, errno);
}

}  // namespace offpath::service
