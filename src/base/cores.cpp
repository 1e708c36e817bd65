// SPDX-License-Identifier: BSD-3-Clause
#include "base/cores.hpp"

#include <pthread.h>
#include <signal.h>

#include <charconv>

namespace offpath::base {

std::string ranges_of(const cpu_set_t& cores) {
  std::string out;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &cores)) continue;
    int last = core;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &cores)) ++last;
    out += (out.empty() ? "" : ",") + std::to_string(core);
    if (last > core) out += "-" + std::to_string(last);
    core = last;
  }
  return out;
}

std::optional<cpu_set_t> cores_in(const std::string& ranges) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const char *at = ranges.data(), *const end = at + ranges.size();
  const auto read = [&](unsigned& core) {
    const auto [behind, error] = std::from_chars(at, end, core);
    at = behind;
    return error == std::errc();
  };
  while (true) {
    unsigned first = 0, last = 0;
    if (!read(first)) return std::nullopt;
    last = first;
    if (at != end && *at == '-' && (++at, !read(last) || last < first)) return std::nullopt;
    for (unsigned core = first; core <= last && core < CPU_SETSIZE; ++core) CPU_SET(core, &cores);
    if (at == end) return cores;
    if (*at++ != ',') return std::nullopt;
  }
}

cpu_set_t usable(cpu_set_t cores) {
  const auto try_them = [](void* given) -> void* {
    auto* const wanted = static_cast<cpu_set_t*>(given);
    if (sched_setaffinity(0, sizeof(*wanted), wanted) != 0) {
      CPU_ZERO(wanted);
    } else {
      CPU_ZERO(wanted);
      sched_getaffinity(0, sizeof(*wanted), wanted);
    }
    return nullptr;
  };
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's handlers are none of its
  pthread_t thread;
  if (pthread_create(&thread, nullptr, try_them, &cores) == 0) pthread_join(thread, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return cores;
}

}  // namespace offpath::base
