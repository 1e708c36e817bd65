// SPDX-License-Identifier: BSD-3-Clause
// Command lines of programs: each option is declared once, with its limits; errors and --help come from that. Of a
// repeated option the last counts. A value stands behind its option, or after a "=".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace arguments {

class Arguments {
 public:
  Arguments(std::string program, std::string description);

  // What is declared must outlive parse(). Values keep what they had where the option is not given; --help shows
  // that, if it is within the limits.
  void flag(const std::string& name, bool& value, const std::string& help);
  void text(const std::string& name, std::string& value, const std::string& help);
  template <class Integer>
  void number(const std::string& name, Integer& value, std::int64_t lowest, std::int64_t highest,
              const std::string& help) {
    whole(name, static_cast<std::int64_t>(value), lowest, highest, help,
          [&value](std::int64_t given) { value = static_cast<Integer>(given); });
  }
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

  // A number, or places in `words`, for `take`.
  void whole(const std::string& name, std::int64_t value, std::int64_t lowest, std::int64_t highest,
             const std::string& help, std::function<void(std::int64_t)> take);
  enum class Many { no, yes };
  void choose(const std::string& name, Many many, const std::vector<std::string>& words, const std::string& preset,
              const std::string& help, std::function<void(const std::vector<std::size_t>&)> take);

  // What is no option: at least one of them.
  void others(const std::string& name, std::vector<std::string>& values, const std::string& help);

  // `text` is shown, instead of doing anything, for --version.
  void version(const std::string& text);
  // Of options that were declared before.
  void required(const std::string& name);
  void needs(const std::string& name, const std::string& other);
  void excludes(const std::string& name, const std::string& other);

  // Empty when the arguments are good, else one line for the user.
  std::string parse(int argc, const char* const* argv);
  // To be shown instead of doing anything; empty: nobody has asked for it.
  const std::string& help() const { return help_; }
  // Parses, and says on the standard streams what is to be said. The exit status, if there is nothing left to do.
  std::optional<int> done(int argc, const char* const* argv);

 private:
  struct Option {
    std::string name = {}, kind = {}, preset = {}, needed = {}, help = {};
    std::function<bool(const std::string&)> take = {};  // false: not usable
    bool is_flag = false, is_required = false, is_given = false;
    std::vector<std::string> needs = {}, excludes = {};
  };

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
  Option* find(const std::string& name);
  Option& known(const std::string& name);
  std::string take(Option& option, const std::string& text);
  std::string check() const;
  std::string page() const;

  std::string program_, description_, version_, help_;
  std::vector<Option> options_;
  Option others_;
};

inline constexpr std::int64_t kUnlimited = INT64_MAX;

}  // namespace arguments
