// SPDX-License-Identifier: BSD-3-Clause
#include "arguments.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

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

struct Limits {
  std::int64_t lowest, highest;

  std::optional<std::int64_t> parse(const std::string& text) const {
    std::int64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || value < lowest || value > highest) return std::nullopt;
    return value;
  }
  std::string text() const {
    return " from " + std::to_string(lowest) + (highest == kUnlimited ? "" : " to " + std::to_string(highest));
  }
};

}  // namespace

struct Arguments::App : CLI::App {
  using CLI::App::App;

  // `take` says whether it could use the value.
  void add(const std::string& name, const char* kind, const std::string& preset, const std::string& needed,
           const std::string& help, std::function<bool(const std::string&)> take) {
    const auto checked = [name, needed, take = std::move(take)](const std::string& text) {
      if (take(text)) return;
      throw CLI::Error("Value", name + " '" + text + "' is not usable (needed: " + needed + "). Give another value");
    };
    add_option_function<std::string>(name, checked, help)
        ->type_name(kind)
        ->default_str(preset)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }

  template <class Number>
  void add_number(const std::string& name, Number& value, Limits limits, const std::string& help) {
    const bool has_value = value >= limits.lowest && value <= limits.highest;
    const auto take = [limits, &value](const std::string& text) {
      const auto parsed = limits.parse(text);
      if (parsed) value = static_cast<Number>(*parsed);
      return parsed.has_value();
    };
    add(name, "N", has_value ? std::to_string(value) : "", "a whole number" + limits.text(), help, take);
  }
};

Arguments::Arguments(const std::string& program, const std::string& description)
    : app_(std::make_unique<App>(description, program)) {
  app_->set_help_flag("-h,--help", "shows this");
}

Arguments::~Arguments() = default;

void Arguments::flag(const std::string& name, bool& value, const std::string& help) {
  app_->add_flag_function(
      name, [&value](std::int64_t) { value = true; }, help);
}

void Arguments::text(const std::string& name, std::string& value, const std::string& help) {
  const auto take = [&value](const std::string& given) {
    value = given;
    return !given.empty();
  };
  app_->add(name, "TEXT", value, "a text", help, take);
}

void Arguments::number(const std::string& name, int& value, int lowest, int highest, const std::string& help) {
  app_->add_number(name, value, {lowest, highest}, help);
}

void Arguments::number(const std::string& name, std::int64_t& value, std::int64_t lowest, std::int64_t highest,
                       const std::string& help) {
  app_->add_number(name, value, {lowest, highest}, help);
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
  app_->add(name, "X", shown(value), "a number from " + shown(lowest) + " to " + shown(highest), help, take);
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
  app_->add(name, "N,N,...", joined(preset, ","), "whole numbers" + limits.text() + ", separated by commas", help,
            take);
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
  app_->add(name, many_words ? "WORD,..." : "WORD", preset, (many_words ? "some of " : "one of ") + all,
            help + " (" + all + ")", choice);
}

std::string Arguments::parse(int argc, const char* const* argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help_ = app_->help();
  } catch (const CLI::ExtrasError&) {
    return "unknown option '" + app_->remaining().front() + "' (nothing was run). Use --help to see the options";
  } catch (const CLI::ArgumentMismatch&) {  // a value is missing at the end only
    const std::string last = argv[argc - 1];
    return "option " + last + " has no value (it takes one). Use " + last + " VALUE";
  } catch (const CLI::Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace arguments
