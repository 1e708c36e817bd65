// SPDX-License-Identifier: BSD-3-Clause
// What a program has found, as JSON. nlohmann's library writes it (json.cpp); each file that reads that library's header
// takes three to four seconds more to compile.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kit {

// Names stay in the order in which they came. Of one thread.
class Json {
 public:
  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(std::signed_integral auto value) : value_(static_cast<std::int64_t>(value)) {}
  Json(std::unsigned_integral auto value) : value_(static_cast<std::uint64_t>(value)) {}
  Json(std::floating_point auto value) : value_(static_cast<double>(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <std::ranges::range Values>
  requires(!std::convertible_to<Values, std::string>) Json(const Values& values)
      : value_(Array(values.begin(), values.end())) {}
  // Pairs that begin with a text are an object, everything else is an array.
  Json(std::initializer_list<Json> items);
  static Json array() { return Json(Array{}); }

  // Null becomes an object, or an array.
  Json& operator[](const std::string& name);
  void push_back(Json value);
  // indent: spaces; negative: all in one line
  std::string dump(int indent = -1) const;

 private:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;
  struct Writer;
  explicit Json(Array values) : value_(std::move(values)) {}
  bool names_a_value() const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

}  // namespace kit
