// SPDX-License-Identifier: BSD-3-Clause
#include "base/log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>

namespace offpath::base {
namespace {
int log_fd = -1;
LogLevel log_level = LogLevel::info;
constexpr const char* kNames[] = {"error", "warn", "info", "debug"};
}  // namespace

bool log_open(const char* path, LogLevel level) {
  log_level = level;
  if (path == nullptr || *path == '\0') return true;
  log_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  return log_fd >= 0;
}

bool log_enabled(LogLevel level) { return log_fd >= 0 && level <= log_level; }

void log_write(LogLevel level, const char* format, ...) {
  if (!log_enabled(level)) return;
  char line[512];
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  int used = snprintf(line, sizeof(line), "%lld.%06ld %d %s: ", static_cast<long long>(now.tv_sec), now.tv_nsec / 1000,
                      getpid(), kNames[static_cast<int>(level)]);
  va_list arguments;
  va_start(arguments, format);
  const int body = vsnprintf(line + used, sizeof(line) - 1 - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  used += body;
  if (used > static_cast<int>(sizeof(line)) - 2) used = sizeof(line) - 2;
  line[used++] = '\n';
  [[maybe_unused]] const ssize_t written = write(log_fd, line, static_cast<size_t>(used));
}

}  // namespace offpath::base
