// SPDX-License-Identifier: BSD-3-Clause
#include "attach/settings.hpp"

#include "base/environment.hpp"

#include <strings.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <iterator>

namespace offpath::attach {
namespace {

constexpr const char* kLevels[] = {"off", "error", "warn", "info", "debug"};

LogLevel parse_level(const std::string& text) {
  for (size_t i = 0; i < std::size(kLevels); ++i) {
    if (strcasecmp(text.c_str(), kLevels[i]) == 0) return static_cast<LogLevel>(i);
  }
  return LogLevel::warn;
}

}  // namespace

Settings Settings::from_environment() {
  using base::Environment;
  Settings settings;
  settings.log = parse_level(Environment::text("OFFPATH_LOG"));
  settings.policy = Environment::text("OFFPATH_POLICY");
  settings.memory = Environment::text("OFFPATH_MPI_MEMORY");
  settings.adapt = Environment::text("OFFPATH_MPI_ADAPT");
  settings.adapt_percent = Environment::number("OFFPATH_MPI_ADAPT_PERCENT", 1, 1, 100);
  settings.comm_policy = Environment::text("OFFPATH_MPI_COMM_POLICY");
  settings.windows = Environment::text("OFFPATH_MPI_WINDOWS");
  settings.staging_bytes = Environment::number("OFFPATH_MPI_STAGING", 64 << 20, 0, uint64_t{1} << 46);
  settings.blocking = Environment::text("OFFPATH_MPI_BLOCKING");
  settings.stats_file = Environment::text("OFFPATH_STATS_FILE");
  settings.service_cores = Environment::text("OFFPATH_SERVICE_CORES");
  settings.share_cores = Environment::flag("OFFPATH_SERVICE_SHARE", false);
  settings.quiet_waits = Environment::flag("OFFPATH_QUIET_WAITS", false);
  settings.loss_timeout =
      std::chrono::milliseconds(Environment::number("OFFPATH_MPI_LOSS_TIMEOUT_MS", 60000, 1, 86400000));
  return settings;
}

void say(const Settings& settings, LogLevel level, const char* format, ...) {
  if (level > settings.log) return;
  char line[1024];
  int used = snprintf(line, sizeof(line), "offpath %s: ", kLevels[static_cast<size_t>(level)]);
  va_list arguments;
  va_start(arguments, format);
  used += vsnprintf(line + used, sizeof(line) - 1 - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  if (used > static_cast<int>(sizeof(line)) - 2) used = sizeof(line) - 2;
  line[used++] = '\n';
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, static_cast<size_t>(used));
}

}  // namespace offpath::attach
