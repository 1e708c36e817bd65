// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE, in the form the MPI front end writes too.
#include "job.hpp"
#include "node.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace offpath::shmem {
namespace {

constexpr const char* kFamilyNames[kFamilies] = {"put", "get", "atomic"};

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

}  // namespace

void Job::write_statistics() const {
  if (settings_.stats_file.empty()) return;
  offpath_session_counters_t service{};
  service.struct_bytes = sizeof(service);
  if (session_ != nullptr) offpath_session_counters(session_, &service);
  uint64_t offloaded_count = 0, native_count = 0, mapped_count = 0;
  std::string families;
  for (size_t i = 0; i < kFamilies; ++i) {
    const uint64_t offloaded = counters_.families[i].offloaded_count.load();
    const uint64_t stayed = counters_.families[i].native_count.load();
    offloaded_count += offloaded;
    native_count += stayed;
    mapped_count += counters_.families[i].mapped_count.load();
    if (offloaded + stayed == 0) continue;
    families += std::string(families.empty() ? "" : ",") + "\"" + kFamilyNames[i] +
                "\":{\"offloaded_count\":" + std::to_string(offloaded) + ",\"native_count\":" + std::to_string(stayed) +
                "}";
  }
  char numbers[768];
  snprintf(numbers, sizeof(numbers),
           "\"offloaded_count\":%" PRIu64 ",\"native_count\":%" PRIu64 ",\"mapped_count\":%" PRIu64
           ",\"offloaded_bytes\":%" PRIu64 ",\"completed_count\":%" PRIu64 ",\"failed_count\":%" PRIu64
           ",\"pulled_bytes\":%" PRIu64 ",\"served_bytes\":%" PRIu64 ",\"local_bytes\":%" PRIu64
           ",\"doorbell_count\":%" PRIu64 ",\"service_pid\":%u,\"service_cpu_ns\":%" PRIu64,
           offloaded_count, native_count, mapped_count, counters_.offloaded_bytes.load(), service.completed_count,
           service.failed_count, service.pulled_bytes, service.served_bytes, service.local_bytes,
           service.doorbell_count, service.service_pid, service.service_cpu_ns);
  const std::string line = "{\"rank\":" + std::to_string(pe_) + ",\"size\":" + std::to_string(pe_count_) +
                           ",\"node\":" + json_text(mpi::host_name().data()) +
                           ",\"mpi\":\"openshmem\",\"enabled\":" + (reason_.empty() ? "true" : "false") +
                           ",\"reason\":" + json_text(reason_) + "," + numbers + ",\"collectives\":{" + families +
                           "}}\n";
  const int fd = open(settings_.stats_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    mpi::say(settings_, mpi::LogLevel::warn, "cannot write OFFPATH_STATS_FILE='%s'. Give a file in a writable folder",
             settings_.stats_file.c_str());
    return;
  }
  // One write, so that the lines of all PEs stay whole.
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  ::close(fd);
}

}  // namespace offpath::shmem
