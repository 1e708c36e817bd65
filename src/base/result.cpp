// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace offpath::base {

// Done, or an error.
bool is_known_code(int32_t number) {
  switch (number) {
#define OFFPATH_STATUS(NAME, number, text, about) case number:
#include <offpath/words/statuses.def>
    return number <= OFFPATH_OK;
  }
  return false;
}

Code known_code(int32_t number) { return is_known_code(number) ? static_cast<Code>(number) : OFFPATH_ERR_INTERNAL; }

Status Status::error(Code code, const char* format, ...) {
  Status status;
  status.code_ = code;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(status.text_, sizeof(status.text_), format, arguments);
  va_end(arguments);
  return status;
}

Status Status::system_error(Code code, int number, const char* format, ...) {
  Status status;
  status.code_ = code;
  va_list arguments;
  va_start(arguments, format);
  const int written = vsnprintf(status.text_, sizeof(status.text_), format, arguments);
  va_end(arguments);
  const size_t used = strnlen(status.text_, sizeof(status.text_));
  char room[64];
  const char* const said = strerror_r(number, room, sizeof(room));
  const char* const cure = number == EMFILE ? ". Raise 'ulimit -n'" : "";
  if (written >= 0) snprintf(status.text_ + used, sizeof(status.text_) - used, ": %s%s", said, cure);
  return status;
}

void Status::copy_to(offpath_error_t* out) const {
  if (out == nullptr) return;
  out->status = code_;
  static_assert(sizeof(out->text) == sizeof(text_));
  memcpy(out->text, text_, sizeof(text_));
}

ErrnoGuard::ErrnoGuard() : saved_(errno) {}
ErrnoGuard::~ErrnoGuard() { errno = saved_; }

}  // namespace offpath::base

// Here and not in client/, because services report with it too.
extern "C" const char* offpath_status_string(offpath_status_t status) {
  switch (status) {
#define OFFPATH_STATUS(NAME, number, text, about) \
  case OFFPATH_##NAME:                            \
    return text;
#include <offpath/words/statuses.def>
  }
  return "unknown status";
}
