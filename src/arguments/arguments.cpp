// SPDX-License-Identifier: BSD-3-Clause
#include "arguments/arguments.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace arguments {
namespace {

std::vector<std::string> parts(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    all.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

constexpr std::size_t kHelpColumn = 30;
constexpr int kWrongUse = 2;

struct Limits {
  std::int64_t lowest, highest;

  std::optional<std::int64_t> parse(const std::string& text) const {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || !contain(value)) return std::nullopt;
    return value;
  }
  bool contain(std::int64_t value) const { return value >= lowest && value <= highest; }
  std::string text() const {
    return " from " + std::to_string(lowest) + (highest == kUnlimited ? "" : " to " + std::to_string(highest));
  }
};

// As they stand in --help: the option, what it takes, what it is for.
std::string line(const std::string& option, const std::string& help) {
  std::string text = "  " + option;
  text +=
      text.size() < kHelpColumn ? std::string(kHelpColumn - text.size(), ' ') : '\n' + std::string(kHelpColumn, ' ');
  return text + help + '\n';
}

}  // namespace

Arguments::Arguments(std::string program, std::string description)
    : program_(std::move(program)), description_(std::move(description)) {}

void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  const auto take = [&value](const std::string&) { return value = true; };
  options_.push_back({.name = name, .help = help, .take = take, .is_flag = true});
}

void Arguments::text(const std::string& name, std::string& value, const std::string& help) {
  const auto take = [&value](const std::string& given) {
    value = given;
    return !given.empty();
  };
  options_.push_back({.name = name, .kind = "TEXT", .preset = value, .needed = "a text", .help = help, .take = take});
}

void Arguments::whole(const std::string& name, std::int64_t value, std::int64_t lowest, std::int64_t highest,
                      const std::string& help, std::function<void(std::int64_t)> take) {
  const Limits limits{lowest, highest};
  const auto parse = [limits, take = std::move(take)](const std::string& text) {
    const auto parsed = limits.parse(text);
    if (parsed) take(*parsed);
    return parsed.has_value();
  };
  options_.push_back({.name = name,
                      .kind = "N",
                      .preset = limits.contain(value) ? std::to_string(value) : "",
                      .needed = "a whole number" + limits.text(),
                      .help = help,
                      .take = parse});
}

void Arguments::real(const std::string& name, double& value, double lowest, double highest, const std::string& help) {
  const auto shown = [](double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", number);
    return std::string(text);
  };
  const auto take = [&value, lowest, highest](const std::string& text) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stop != end || !(number >= lowest && number <= highest)) return false;
    value = number;
    return true;
  };
  const std::string needed = "a number from " + shown(lowest) + " to " + shown(highest);
  options_.push_back({.name = name, .kind = "X", .preset = shown(value), .needed = needed, .help = help, .take = take});
}

void Arguments::numbers(const std::string& name, std::vector<std::int64_t>& values, std::int64_t lowest,
                        std::int64_t highest, const std::string& help) {
  const Limits limits{lowest, highest};
  std::vector<std::string> preset;
  for (const std::int64_t value : values) preset.push_back(std::to_string(value));
  const auto take = [limits, &values](const std::string& text) {
    values.clear();
    for (const std::string& part : parts(text)) {
      const auto parsed = limits.parse(part);
      if (!parsed) return false;
      values.push_back(*parsed);
    }
    return true;
  };
  options_.push_back({.name = name,
                      .kind = "N,N,...",
                      .preset = joined(preset, ","),
                      .needed = "whole numbers" + limits.text() + ", separated by commas",
                      .help = help,
                      .take = take});
}

void Arguments::choose(const std::string& name, Many many, const std::vector<std::string>& words,
                       const std::string& preset, const std::string& help,
                       std::function<void(const std::vector<std::size_t>&)> take) {
  const auto choice = [words, many, take = std::move(take)](const std::string& text) {
    std::vector<std::size_t> chosen;
    for (const std::string& part : many == Many::yes ? parts(text) : std::vector<std::string>{text}) {
      const auto found = std::find(words.begin(), words.end(), part);
      if (found == words.end()) return false;
      chosen.push_back(static_cast<std::size_t>(found - words.begin()));
    }
    take(chosen);
    return true;
  };
  const std::string all = joined(words, ", ");
  const bool many_words = many == Many::yes;
  options_.push_back({.name = name,
                      .kind = many_words ? "WORD,..." : "WORD",
                      .preset = preset,
                      .needed = (many_words ? "some of " : "one of ") + all,
                      .help = help + " (" + all + ")",
                      .take = choice});
}

void Arguments::others(const std::string& name, std::vector<std::string>& values, const std::string& help) {
  const auto take = [&values](const std::string& text) {
    values.push_back(text);
    return !text.empty();
  };
  others_ = {.name = name, .needed = "a text", .help = help, .take = take, .is_required = true};
}

void Arguments::version(const std::string& text) { version_ = text; }

void Arguments::required(const std::string& name) { known(name).is_required = true; }

void Arguments::needs(const std::string& name, const std::string& other) { known(name).needs.push_back(other); }

void Arguments::excludes(const std::string& name, const std::string& other) { known(name).excludes.push_back(other); }

Arguments::Option* Arguments::find(const std::string& name) {
  const auto found =
      std::find_if(options_.begin(), options_.end(), [&](const Option& each) { return each.name == name; });
  return found == options_.end() ? nullptr : &*found;
}

Arguments::Option& Arguments::known(const std::string& name) {
  Option* const option = find(name);
  return option != nullptr ? *option : others_;
}

std::string Arguments::take(Option& option, const std::string& text) {
  option.is_given = true;
  if (option.take(text)) return {};
  return option.name + " '" + text + "' is not usable (needed: " + option.needed + "). Give another value";
}

std::string Arguments::check() const {
  const auto is_given = [this](const std::string& name) {
    return std::any_of(options_.begin(), options_.end(),
                       [&](const Option& each) { return each.name == name && each.is_given; });
  };
  for (const Option& option : options_) {
    if (option.is_required && !option.is_given)
      return option.name + " is missing (nothing can be done without it). Use --help to see the options";
    if (!option.is_given) continue;
    for (const std::string& other : option.needs)
      if (!is_given(other)) return option.name + " was given without " + other + " (it means nothing alone). Give both";
    for (const std::string& other : option.excludes)
      if (is_given(other))
        return option.name + " and " + other + " were both given (each does another thing). Give one";
  }
  if (others_.is_required && !others_.is_given)
    return others_.name + " is missing (nothing can be done without it). Use --help to see the options";
  return {};
}

std::string Arguments::parse(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") {
      help_ = page();
      return {};
    }
    if (word == "--version" && !version_.empty()) {
      help_ = version_ + '\n';
      return {};
    }
    const std::size_t equals = word.rfind("--", 0) == 0 ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    Option* option = find(name);
    if (option == nullptr && others_.take && word.rfind('-', 0) != 0) option = &others_;
    if (option == nullptr || (option->is_flag && equals != std::string::npos))
      return "unknown option '" + word + "' (nothing was run). Use --help to see the options";
    std::string value = word;
    if (option != &others_ && !option->is_flag) {
      if (equals == std::string::npos && i + 1 == argc)
        return "option " + name + " has no value (it takes one). Use " + name + " VALUE";
      value = equals == std::string::npos ? argv[++i] : word.substr(equals + 1);
    }
    const std::string problem = take(*option, value);
    if (!problem.empty()) return problem;
  }
  return check();
}

std::string Arguments::page() const {
  std::string text = description_ + "\nUsage: " + program_ + " [OPTIONS]";
  if (others_.take) text += " " + others_.name + "...\n\n" + line(others_.name, others_.help);
  text += (others_.take ? "\nOptions:\n" : "\n\nOptions:\n") + line("-h,--help", "shows this");
  if (!version_.empty()) text += line("--version", "shows the version");
  for (const Option& option : options_) {
    std::string shown = option.name + (option.is_flag ? "" : " " + option.kind);
    if (!option.preset.empty()) shown += "=" + option.preset;
    std::string help = option.help;
    if (option.is_required) help += " (required)";
    if (!option.needs.empty()) help += " (with " + joined(option.needs, ", ") + ")";
    if (!option.excludes.empty()) help += " (not with " + joined(option.excludes, ", ") + ")";
    text += line(shown, help);
  }
  return text;
}

std::optional<int> Arguments::done(int argc, const char* const* argv) {
  const std::string problem = parse(argc, argv);
  if (!problem.empty()) {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), problem.c_str());
    return kWrongUse;
  }
  std::fputs(help_.c_str(), stdout);
  if (!help_.empty()) return 0;
  return std::nullopt;
}

}  // namespace arguments
