// SPDX-License-Identifier: BSD-3-Clause
// Messages of the service to its log file (or nowhere). The preloaded part does not use it; front ends talk to the
// user themselves. Levels: error = the service cannot do its job; warn = a client or peer misbehaves or was lost;
// info = life cycle, a few lines a run; debug = per operation.
#pragma once

namespace offpath::base {

enum class LogLevel { error, warn, info, debug };

// Opens (appends to) `path`; empty: messages are dropped. Returns false if it cannot be opened.
bool log_open(const char* path, LogLevel level);
bool log_enabled(LogLevel level);
// One line, prefixed with time and process id; a single write, safe from several threads.
void log_write(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace offpath::base
