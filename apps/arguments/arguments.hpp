// SPDX-License-Identifier: BSD-3-Clause
// Command lines of applications and benchmarks: each option is declared once, with its limits; errors and --help come
// from that. Of a repeated option the last counts. (The library behind it takes seconds to compile: only here.)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace arguments {

class Arguments {
 public:
  Arguments(const std::string& program, const std::string& description);
  ~Arguments();

  // What is declared must outlive parse(). Values keep what they had where the option is not given; --help shows
  // that, if it is within the limits.
  void flag(const std::string& name, bool& value, const std::string& help);
  void text(const std::string& name, std::string& value, const std::string& help);
  void number(const std::string& name, int& value, int lowest, int highest, const std::string& help);
  void number(const std::string& name, std::int64_t& value, std::int64_t lowest, std::int64_t highest,
              const std::string& help);
  void real(const std::string& name, double& value, double lowest, double highest, const std::string& help);
  // Separated by commas, at least one.
  void numbers(const std::string& name, std::vector<std::int64_t>& values, std::int64_t lowest, std::int64_t highest,
               const std::string& help);
  // One of some words, or several of them separated by commas.
  template <class Value>
  using Words = std::vector<std::pair<std::string, Value>>;
  template <class Value>
  void word(const std::string& name, Value& value, const Words<Value>& words, const std::string& help) {
    choose(name, Many::no, names(words), preset(words, {value}), help,
           [&value, words](const auto& chosen) { value = words[chosen[0]].second; });
  }
  template <class Value>
  void words(const std::string& name, std::vector<Value>& values, const Words<Value>& words, const std::string& help) {
    choose(name, Many::yes, names(words), preset(words, values), help, [&values, words](const auto& chosen) {
      values.clear();
      for (const std::size_t index : chosen) values.push_back(words[index].second);
    });
  }

  // Empty when the arguments are good, else one line for the user.
  std::string parse(int argc, const char* const* argv);
  // To be shown instead of doing anything; empty: nobody has asked for it.
  const std::string& help() const { return help_; }

 private:
  enum class Many { no, yes };
  template <class Value>
  static std::vector<std::string> names(const Words<Value>& words) {
    std::vector<std::string> out;
    for (const auto& word : words) out.push_back(word.first);
    return out;
  }
  template <class Value>
  static std::string preset(const Words<Value>& words, const std::vector<Value>& values) {
    std::string text;
    for (const Value& value : values)
      for (const auto& [name, each] : words)
        if (each == value) text += (text.empty() ? "" : ",") + name;
    return text;
  }
  void choose(const std::string& name, Many many, const std::vector<std::string>& words, const std::string& preset,
              const std::string& help, std::function<void(const std::vector<std::size_t>&)> take);

  struct App;
  std::unique_ptr<App> app_;
  std::string help_;
};

inline constexpr std::int64_t kUnlimited = INT64_MAX;

}  // namespace arguments
