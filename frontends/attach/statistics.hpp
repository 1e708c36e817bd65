// SPDX-License-Identifier: BSD-3-Clause
// The line of a process in OFFPATH_STATS_FILE: one JSON object.
#pragma once

#include "settings.hpp"

#include <offpath/offpath.h>

#include <cstdint>
#include <string>

namespace offpath::attach {

class JsonObject {
 public:
  JsonObject& number(const char* key, uint64_t value) { return add(key, std::to_string(value)); }
  JsonObject& flag(const char* key, bool value) { return add(key, value ? "true" : "false"); }
  JsonObject& text(const char* key, const std::string& value);
  JsonObject& object(const char* key, const JsonObject& value) { return add(key, value.json()); }
  std::string json() const { return "{" + members_ + "}"; }

 private:
  JsonObject& add(const char* key, const std::string& value);

  std::string members_;
};

// Who writes: which process of how many, by which interface, and why nothing is offloaded (empty: it is).
JsonObject statistics_of(int rank, int size, const char* interface, const std::string& reason);
// {"offloaded_count":3,"native_count":0}
JsonObject offloaded_and_native(uint64_t offloaded_count, uint64_t native_count);
// All zero without a session.
offpath_session_counters_t counters_of(offpath_session_t* session);
// What the service did for this process.
void add_service(const offpath_session_counters_t& counters, JsonObject* line);

// Appends to the settings' file, if there is one, in a single write, so that the lines of all processes stay whole.
void append_statistics(const Settings& settings, const JsonObject& line);

}  // namespace offpath::attach
