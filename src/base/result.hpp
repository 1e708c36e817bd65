// SPDX-License-Identifier: BSD-3-Clause
// Status and Result<T>: how every function of ours reports failure. No heap, no exceptions; the text is a fixed
// array, so an error can be made and carried anywhere, also inside somebody else's process.
#pragma once

#include <offpath/offpath.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace offpath::base {

using Code = offpath_status_t;

// The result that a number from outside stands for. One that is none of ours is an internal error of the other side.
Code known_code(int32_t number);

// Whether it stands for one.
bool is_known_code(int32_t number);

class [[nodiscard]] Status {
 public:
  Status() = default;
  // printf-style; text reads "problem (why it matters). What to do".
  static Status error(Code code, const char* format, ...) __attribute__((format(printf, 2, 3)));
  // As error(), with ": " and the description of errno value `number` appended.
  static Status system_error(Code code, int number, const char* format, ...) __attribute__((format(printf, 3, 4)));

  bool ok() const { return code_ == OFFPATH_OK; }
  Code code() const { return code_; }
  const char* text() const { return text_; }
  void copy_to(offpath_error_t* out) const;

 private:
  Code code_ = OFFPATH_OK;
  char text_[sizeof(offpath_error_t::text)] = "";
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(status) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  T& value() { return *value_; }
  const T& value() const { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// Saves errno at construction and restores it at the end of the scope: a guest leaves no trace.
class ErrnoGuard {
 public:
  ErrnoGuard();
  ~ErrnoGuard();
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

}  // namespace offpath::base
