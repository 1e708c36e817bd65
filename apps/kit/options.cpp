// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <cstdio>
#include <functional>

#include "arguments/arguments.hpp"

namespace kit {

// What is said once members have their presets.
struct Options::Known {
  std::string about;
  std::vector<std::function<void(arguments::Arguments&)>> said;
};

Options::Options(const char* program, std::string about) : program_(program), known_(new Known{std::move(about), {}}) {}
Options::~Options() = default;

std::optional<int> Options::read(int argc, char** argv, bool speaks) {
  speaks_ = speaks;
  arguments::Arguments arguments(program_, known_->about);
  for (const auto& say : known_->said) say(arguments);
  std::string problem = arguments.parse(argc, argv);
  if (problem.empty() && arguments.help().empty()) problem = check();
  if (!problem.empty()) return complain(problem, kBadArguments);
  if (arguments.help().empty()) return std::nullopt;
  if (speaks) std::fputs(arguments.help().c_str(), stdout);
  return 0;
}

int Options::complain(const std::string& problem, int status) const {
  if (speaks_) std::fprintf(stderr, "%s: %s\n", program_, problem.c_str());
  return status;
}

void Options::require(const char* name) {
  known_->said.push_back([=](auto& known) { known.required(name); });
}

bool Options::flag(bool& value, const char* name, const char* help) {
  known_->said.push_back([=, &value](auto& known) { known.flag(name, value, help); });
  return false;
}

std::string Options::text(std::string& value, const char* name, const char* help) {
  known_->said.push_back([=, &value](auto& known) { known.text(name, value, help); });
  return {};
}

double Options::real(double& value, const char* name, double preset, double lowest, double highest, const char* help) {
  known_->said.push_back([=, &value](auto& known) { known.real(name, value, lowest, highest, help); });
  return preset;
}

void Options::whole(void* at, void (*set)(void*, std::int64_t), const char* name, std::int64_t preset,
                    std::int64_t lowest, std::int64_t highest, const char* help) {
  known_->said.push_back([=](auto& known) {
    known.whole(name, preset, lowest, highest, help, [=](std::int64_t given) { set(at, given); });
  });
}

Options::Numbers Options::numbers(Numbers& values, const char* name, Numbers preset, std::int64_t lowest,
                                  std::int64_t highest, const char* help) {
  known_->said.push_back([=, &values](auto& known) { known.numbers(name, values, lowest, highest, help); });
  return preset;
}

std::string Options::word(std::string& value, const char* name, const char* preset,
                          const std::vector<std::string>& words, const char* help) {
  const auto set = [=, &value](const std::vector<std::size_t>& given) { value = words[given[0]]; };
  known_->said.push_back(
      [=](auto& known) { known.choose(name, arguments::Arguments::Many::no, words, preset, help, set); });
  return preset;
}

void Options::choice(void* at, void (*set)(void*, const std::vector<std::size_t>&), const char* name, bool many,
                     const std::vector<std::string>& words, const std::vector<std::size_t>& preset, const char* help) {
  std::string shown;
  for (const std::size_t word : preset) shown += (shown.empty() ? "" : ",") + words[word];
  known_->said.push_back([=](auto& known) {
    known.choose(name, many ? arguments::Arguments::Many::yes : arguments::Arguments::Many::no, words, shown, help,
                 [=](const std::vector<std::size_t>& given) { set(at, given); });
  });
}

std::vector<std::string> Options::others(std::vector<std::string>& values, const char* name, const char* help) {
  known_->said.push_back([=, &values](auto& known) { known.others(name, values, help); });
  return {};
}

}  // namespace kit
