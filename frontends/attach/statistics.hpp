// SPDX-License-Identifier: BSD-3-Clause
// The line of a process in OFFPATH_STATS_FILE, one JSON object, and how it gets there.
#pragma once

#include "attach/exchange.hpp"
#include "attach/loss.hpp"
#include "attach/settings.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <string>
#include <vector>

namespace offpath::attach {

class JsonObject {
 public:
  JsonObject& number(const char* key, uint64_t value) { return add(key, std::to_string(value)); }
  JsonObject& integer(const char* key, int64_t value) { return add(key, std::to_string(value)); }
  JsonObject& real(const char* key, double value);  // finite
  JsonObject& flag(const char* key, bool value) { return add(key, value ? "true" : "false"); }
  JsonObject& text(const char* key, const std::string& value);
  JsonObject& object(const char* key, const JsonObject& value) { return add(key, value.json()); }
  JsonObject& list(const char* key, const std::vector<JsonObject>& values);
  std::string json() const { return "{" + members_ + "}"; }

 private:
  JsonObject& add(const char* key, const std::string& value);

  std::string members_;
};

// Who writes: which process of how many, by which interface, in which step of Slurm, and why nothing is offloaded (empty:
// it is).
JsonObject statistics_of(int rank, int size, const char* interface, const std::string& reason);
// {"offloaded_count":3,"native_count":0}
JsonObject offloaded_and_native(uint64_t offloaded_count, uint64_t native_count);
// All zero without a session.
offpath_session_counters_t counters_of(offpath_session_t* session);
// Nothing where nothing was lost.
void add_loss(const Loss& loss, JsonObject* line);
// What the service did for this process.
void add_service(offpath_session_t* session, const offpath_session_counters_t& counters, JsonObject* line);

// The longest buffers that were moved.
void add_moved(offpath_session_t* session, JsonObject* line);

// What was allocated and moved (OFFPATH_MAPPED), if anything was to be: a line at level info.
void say_memory(const Settings& settings, const offpath_session_counters_t& counters);

// Lines of all processes are gathered and appended by one of them: how well this one can. 0: no file was named; 1: it
// may be made here; 2: it is here already, as the file of `offpath run` is for whoever shares its file system. The
// first with the largest claim is the one.
uint32_t claim_on_statistics(const Settings& settings);

// Appends lines to the settings' file, each in a single write if it is handed over whole, so that lines stay whole when
// several jobs write.
class StatisticsFile {
 public:
  explicit StatisticsFile(const Settings& settings);
  ~StatisticsFile();
  StatisticsFile(const StatisticsFile&) = delete;
  StatisticsFile& operator=(const StatisticsFile&) = delete;

  void append(const void* text, size_t bytes);

 private:
  void give_up(int error);

  const Settings& settings_;
  int file_;  // -1: nothing can be written, and that was said
};

// For front ends whose lines are short: all tell theirs, and the one that can appends them. One that is too long is
// left out. Collective.
void write_statistics(const Exchange& job, const Settings& settings, const JsonObject& line);

}  // namespace offpath::attach
