// SPDX-License-Identifier: BSD-3-Clause
#include "clocks.hpp"

#include <chrono>

#include <dlfcn.h>
#include <sys/resource.h>

namespace bench {
namespace {

std::int64_t to_ns(const timeval& time) { return time.tv_sec * 1'000'000'000LL + time.tv_usec * 1'000LL; }

}  // namespace

std::int64_t now_ns() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

std::int64_t process_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return to_ns(usage.ru_utime) + to_ns(usage.ru_stime);
}

std::int64_t service_cpu_ns() {
  using Query = std::uint64_t (*)();
  static const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "offpath_frontend_service_cpu_ns"));
  return query ? std::int64_t(query()) : 0;
}

}  // namespace bench
