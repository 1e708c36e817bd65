// SPDX-License-Identifier: BSD-3-Clause
// The line of OFFPATH_STATS_FILE.
#include "engine.hpp"
#include "job.hpp"
#include "rma/windows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace offpath::mpi {
namespace {

#ifdef OPEN_MPI
constexpr const char* kMpiName = "openmpi";
#else
constexpr const char* kMpiName = "mpich";
#endif

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

offpath_session_counters_t read_counters(offpath_session_t* session) {
  offpath_session_counters_t counters{};
  counters.struct_bytes = sizeof(counters);
  if (session != nullptr) offpath_session_counters(session, &counters);
  return counters;
}

// {"ialltoall":{"offloaded_count":3,"native_count":0},...}: those that were called.
std::string collectives_object(const EngineCounters& counters, uint64_t* offloaded, uint64_t* stayed_native) {
  std::string text;
  for (size_t i = 0; i < kCollectives; ++i) {
    const uint64_t at_service = counters.collectives[i].offloaded_count.load();
    const uint64_t at_host = counters.collectives[i].native_count.load();
    *offloaded += at_service;
    *stayed_native += at_host;
    if (at_service + at_host == 0) continue;
    text += text.empty() ? "" : ",";
    text += json_text(policy::collective_name(static_cast<policy::Collective>(i))) +
            ":{\"offloaded_count\":" + std::to_string(at_service) + ",\"native_count\":" + std::to_string(at_host) +
            "}";
  }
  return "{" + text + "}";
}

std::string windows_object() {
  const WindowTotals& totals = windows.totals();
  return "{\"offloaded_count\":" + std::to_string(totals.offloaded_count.load()) +
         ",\"native_count\":" + std::to_string(totals.native_count.load()) +
         ",\"operations_count\":" + std::to_string(totals.operations_count.load()) +
         ",\"operations_bytes\":" + std::to_string(totals.operations_bytes.load()) + "}";
}

}  // namespace

uint64_t Job::service_cpu_ns() const { return active() ? read_counters(session_).service_cpu_ns : 0; }

void Job::write_statistics() const {
  if (settings_.stats_file.empty()) return;
  const offpath_session_counters_t counters = read_counters(session_);
  const EngineCounters& own = engine.counters();
  uint64_t offloaded_count = 0;
  uint64_t native_count = 0;
  const std::string collectives = collectives_object(own, &offloaded_count, &native_count);
  char numbers[1024];
  snprintf(numbers, sizeof(numbers),
           "\"offloaded_count\":%" PRIu64 ",\"native_count\":%" PRIu64 ",\"offloaded_bytes\":%" PRIu64
           ",\"completed_count\":%" PRIu64 ",\"failed_count\":%" PRIu64 ",\"pulled_bytes\":%" PRIu64
           ",\"served_bytes\":%" PRIu64 ",\"local_bytes\":%" PRIu64 ",\"doorbell_count\":%" PRIu64
           ",\"service_pid\":%u,\"service_cpu_ns\":%" PRIu64 ",\"wait_ns\":%" PRIu64 ",\"post_ns\":%" PRIu64,
           offloaded_count, native_count, own.offloaded_bytes.load(), own.completed_count.load(),
           own.failed_count.load(), counters.pulled_bytes, counters.served_bytes, counters.local_bytes,
           counters.doorbell_count, counters.service_pid, counters.service_cpu_ns, own.wait_ns.load(),
           own.post_ns.load());
  const std::string line = "{\"rank\":" + std::to_string(rank_) + ",\"size\":" + std::to_string(size_) +
                           ",\"node\":" + json_text(host_.data()) + ",\"mpi\":\"" + kMpiName +
                           "\",\"enabled\":" + (reason_.empty() ? "true" : "false") +
                           ",\"reason\":" + json_text(reason_) + "," + numbers + ",\"collectives\":" + collectives +
                           ",\"windows\":" + windows_object() + "}\n";
  const int fd = open(settings_.stats_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    say(settings_, LogLevel::warn, "cannot write OFFPATH_STATS_FILE='%s'. Give a file in a writable folder",
        settings_.stats_file.c_str());
    return;
  }
  // One write, so that the lines of all ranks stay whole.
  [[maybe_unused]] const ssize_t written = write(fd, line.data(), line.size());
  close(fd);
}

}  // namespace offpath::mpi
