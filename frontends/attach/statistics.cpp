// SPDX-License-Identifier: BSD-3-Clause
#include "statistics.hpp"

#include "node.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace offpath::attach {

JsonObject& JsonObject::add(const char* key, const std::string& value) {
  members_ += std::string(members_.empty() ? "\"" : ",\"") + key + "\":" + value;
  return *this;
}

JsonObject& JsonObject::text(const char* key, const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return add(key, out + '"');
}

JsonObject statistics_of(int rank, int size, const char* interface, const std::string& reason) {
  JsonObject line;
  line.number("rank", static_cast<uint64_t>(rank)).number("size", static_cast<uint64_t>(size));
  line.text("node", host_name().data()).text("mpi", interface);
  return line.flag("enabled", reason.empty()).text("reason", reason);
}

JsonObject offloaded_and_native(uint64_t offloaded_count, uint64_t native_count) {
  JsonObject counts;
  return counts.number("offloaded_count", offloaded_count).number("native_count", native_count);
}

offpath_session_counters_t counters_of(offpath_session_t* session) {
  offpath_session_counters_t counters{};
  counters.struct_bytes = sizeof(counters);
  if (session != nullptr) offpath_session_counters(session, &counters);
  return counters;
}

void add_service(const offpath_session_counters_t& counters, JsonObject* line) {
  line->number("pulled_bytes", counters.pulled_bytes).number("served_bytes", counters.served_bytes);
  line->number("local_bytes", counters.local_bytes).number("doorbell_count", counters.doorbell_count);
  line->number("service_pid", counters.service_pid).number("service_cpu_ns", counters.service_cpu_ns);
}

void append_statistics(const Settings& settings, const JsonObject& line) {
  if (settings.stats_file.empty()) return;
  const int fd = open(settings.stats_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    say(settings, LogLevel::warn, "cannot write OFFPATH_STATS_FILE='%s'. Give a file in a writable folder",
        settings.stats_file.c_str());
    return;
  }
  const std::string text = line.json() + "\n";
  [[maybe_unused]] const ssize_t written = write(fd, text.data(), text.size());
  close(fd);
}

}  // namespace offpath::attach
