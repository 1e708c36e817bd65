// SPDX-License-Identifier: BSD-3-Clause
#include "clocks.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../../apps/kit/clocks.hpp"

namespace bench {
namespace {

constexpr char kServicesAt[] = "OFFPATH_BENCH_SERVICES_AT", kHost[] = "%h", kService[] = "offpathd";

std::string services_at() {
  const char* value = std::getenv(kServicesAt);
  return value ? value : "";
}

// Of all services that run in the network namespace `path`.
std::vector<clockid_t> clocks_in(const std::string& path) {
  std::vector<clockid_t> clocks;
  struct stat wanted {
  }, found{};
  if (stat(path.c_str(), &wanted) != 0) return clocks;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const auto process = pid_t(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    std::string name;  // its first word: those that were started by /proc/self/exe have another in comm
    clockid_t clock;
    if (process <= 0 || !std::getline(std::ifstream(entry.path() / "cmdline"), name, '\0')) continue;
    if (std::filesystem::path(name).filename() != kService) continue;
    if (stat((entry.path() / "ns" / "net").c_str(), &found) != 0 || found.st_ino != wanted.st_ino) continue;
    if (clock_getcpuclockid(process, &clock) == 0) clocks.push_back(clock);
  }
  return clocks;
}

std::vector<clockid_t> clocks_of_this_host() {
  std::string path = services_at();
  char host[256] = {};
  gethostname(host, sizeof(host) - 1);
  if (const std::size_t at = path.find(kHost); at != std::string::npos) path.replace(at, sizeof(kHost) - 1, host);
  return clocks_in(path);
}

}  // namespace

std::int64_t service_cpu_ns() {
  using Query = std::uint64_t (*)();
  static const auto query = reinterpret_cast<Query>(dlsym(RTLD_DEFAULT, "offpath_frontend_service_cpu_ns"));
  return query ? std::int64_t(query()) : 0;
}

FarServices far_services() {
  const std::string path = services_at();
  if (path.empty()) return FarServices::none;
  return path.find(kHost) == std::string::npos ? FarServices::of_all_hosts : FarServices::of_each_host;
}

std::int64_t far_services_cpu_ns() {
  static const std::vector<clockid_t> clocks = clocks_of_this_host();  // they are there as long as the job
  std::int64_t sum = 0;
  for (const clockid_t clock : clocks) sum += kit::clock_ns(clock);
  return sum;
}

}  // namespace bench
