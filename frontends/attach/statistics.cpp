// SPDX-License-Identifier: BSD-3-Clause
#include "attach/statistics.hpp"

#include "attach/node.hpp"
#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace offpath::attach {

JsonObject& JsonObject::add(const char* key, const std::string& value) {
  members_ += std::string(members_.empty() ? "\"" : ",\"") + key + "\":" + value;
  return *this;
}

JsonObject& JsonObject::real(const char* key, double value) {
  char text[32];  // to_chars knows no locale
  const auto [end, error] = std::to_chars(text, text + sizeof(text), value);
  return add(key, error == std::errc() ? std::string(text, end) : "0");
}

JsonObject& JsonObject::text(const char* key, const std::string& value) {
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return add(key, out + '"');
}

JsonObject& JsonObject::list(const char* key, const std::vector<JsonObject>& values) {
  std::string all;
  for (const JsonObject& value : values) all += (all.empty() ? "" : ",") + value.json();
  return add(key, "[" + all + "]");
}

JsonObject statistics_of(int rank, int size, const char* interface, const std::string& reason) {
  JsonObject line;
  line.number("rank", static_cast<uint64_t>(rank)).number("size", static_cast<uint64_t>(size));
  line.text("node", host_name().data()).text("mpi", interface);
  const std::string step = base::Environment::text("SLURM_STEP_ID");
  if (!step.empty()) line.text("step", base::Environment::text("SLURM_JOB_ID") + "." + step);
  line.number("cpu_ns", base::clock_ns(CLOCK_PROCESS_CPUTIME_ID));
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

void add_loss(const Loss& loss, JsonObject* line) {
  if (!loss.problem.empty()) line->text("loss", loss.problem).text("cure", loss.cure);
}

void add_service(offpath_session_t* session, const offpath_session_counters_t& counters, JsonObject* line) {
  constexpr bool reported = true, unreported = false;
  const auto add = [line](bool wanted, const char* key, auto value) {
    if (!wanted) return;
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      line->real(key, value);
    } else {
      line->number(key, value);
    }
  };
#define OFFPATH_COUNTER(type, name, line, metric, about) add(line, #name, counters.name);
#include <offpath/words/counters.def>
  line->integer("saved_ns", session == nullptr ? 0 : offpath_session_saved_ns(session));
  line->number("starved_ns", offpath_session_starved_ns(session));
}

void add_moved(offpath_session_t* session, JsonObject* line) {
  std::array<offpath_moved_t, 8> moved;  // more say little
  std::vector<JsonObject> list;
  const uint32_t count = session == nullptr ? 0 : offpath_session_moved(session, moved.data(), moved.size());
  for (const offpath_moved_t& one : std::span(moved).first(count)) {
    list.emplace_back().number("address", reinterpret_cast<uintptr_t>(one.address)).number("bytes", one.bytes);
  }
  line->list("moved", list);
}

void say_memory(const Settings& settings, const offpath_session_counters_t& c) {
  const uint64_t refused = c.refused_kind_count + c.refused_window_count + c.refused_room_count;
  if (c.moved_count + refused + c.lent_count == 0) return;
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  say(settings, LogLevel::info,
      "memory: %llu buffers allocated (%llu MiB); %llu moved (%llu MiB), %llu of them given up since; left alone: %llu "
      "for their kind, %llu in "
      "windows, %llu for want of room; the service used %llu MiB in place and copied %llu MiB",
      number(c.lent_count), number(c.lent_bytes >> 20), number(c.moved_count), number(c.moved_bytes >> 20),
      number(c.dropped_count), number(c.refused_kind_count), number(c.refused_window_count),
      number(c.refused_room_count), number(c.in_place_bytes >> 20), number(c.copied_bytes >> 20));
}

uint32_t claim_on_statistics(const Settings& settings) {
  if (settings.stats_file.empty()) return 0;
  return access(settings.stats_file.c_str(), W_OK) == 0 ? 2 : 1;
}

StatisticsFile::StatisticsFile(const Settings& settings)
    : settings_(settings), file_(open(settings.stats_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
  if (file_ < 0) give_up(errno);
}

StatisticsFile::~StatisticsFile() {
  if (file_ >= 0) close(file_);
}

void StatisticsFile::append(const void* text, size_t bytes) {
  for (size_t done = 0; file_ >= 0 && done < bytes;) {
    const ssize_t written = write(file_, static_cast<const char*>(text) + done, bytes - done);
    if (written > 0) {
      done += static_cast<size_t>(written);
    } else if (errno != EINTR) {
      give_up(errno);
    }
  }
}

void StatisticsFile::give_up(int error) {
  const auto problem = base::Status::system_error(OFFPATH_ERR_STATE, error, "cannot write OFFPATH_STATS_FILE='%.120s'",
                                                  settings_.stats_file.c_str());
  say(settings_, LogLevel::warn, "%s. Make room there, or give a file in a writable folder", problem.text());
  if (file_ >= 0) close(file_);
  file_ = -1;
}

void write_statistics(const Exchange& job, const Settings& settings, const JsonObject& line) {
  struct Record {
    char line[2048];
  };
  std::vector<uint64_t> claims;
  if (!job.gather(uint64_t{claim_on_statistics(settings)}, &claims)) return;
  const auto keeper = std::max_element(claims.begin(), claims.end());  // the first of them
  if (*keeper == 0) return;
  Record own{};
  const std::string text = line.json() + "\n";
  if (text.size() < sizeof(own.line)) text.copy(own.line, text.size());
  std::vector<Record> records;
  if (!job.gather(own, &records) || keeper - claims.begin() != job.rank()) return;
  StatisticsFile file(settings);
  for (const Record& record : records) file.append(record.line, strlen(record.line));
}

}  // namespace offpath::attach
