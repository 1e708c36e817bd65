// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace offpath::base {

bool is_known_code(int32_t number) { return number <= OFFPATH_OK && number >= OFFPATH_ERR_CANCELLED; }

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
  if (written >= 0) snprintf(status.text_ + used, sizeof(status.text_) - used, ": %s", strerrordesc_np(number));
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
    case OFFPATH_OK:
      return "done";
    case OFFPATH_IN_PROGRESS:
      return "in progress";
    case OFFPATH_ERR_ARGUMENT:
      return "invalid argument";
    case OFFPATH_ERR_STATE:
      return "not possible in this state";
    case OFFPATH_ERR_NO_SERVICE:
      return "no service";
    case OFFPATH_ERR_NO_MEMORY:
      return "out of shared memory";
    case OFFPATH_ERR_PERMISSION:
      return "the service may not access this process's memory";
    case OFFPATH_ERR_SERVICE_LOST:
      return "the service on this node was lost";
    case OFFPATH_ERR_PEER_LOST:
      return "a member's service or process was lost";
    case OFFPATH_ERR_NOT_STARTED:
      return "not started at a lost service";
    case OFFPATH_ERR_TRUNCATED:
      return "a member sent more than is accepted";
    case OFFPATH_ERR_MEMORY_FAULT:
      return "a buffer is not accessible memory";
    case OFFPATH_ERR_INTERNAL:
      return "internal error";
    case OFFPATH_ERR_RANGE:
      return "outside what the target's window exposes";
    case OFFPATH_ERR_SHORT:
      return "a member sent less than is expected";
    case OFFPATH_ERR_DAMAGED:
      return "a compressed block arrived damaged";
    case OFFPATH_ERR_TASK:
      return "the function of a task failed";
    case OFFPATH_ERR_DEPENDENCE:
      return "not run, as an operation that it comes after has failed";
    case OFFPATH_ERR_CANCELLED:
      return "cancelled";
  }
  return "unknown status";
}
