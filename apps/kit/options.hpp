// SPDX-License-Identifier: BSD-3-Clause
// Command line of an application or a benchmark: an option is said once, as a member of a struct.
//
//   struct Options : kit::Options {
//     Options() : kit::Options("program", "What it is for.") {}
//     int steps = number(steps, "--steps", 100, 0, 1000, "what --help says of it");
//   };
//
// Each call returns the preset and keeps the member's address, to which a given value goes. --help has them in this order.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kit {

inline constexpr int kFailed = 1, kBadArguments = 2;  // of main()
inline constexpr std::int64_t kUnlimited = INT64_MAX, kMany = 1000000000;

class Options {
 public:
  using Numbers = std::vector<std::int64_t>;  // separated by commas

  Options(const char* program, std::string about);
  virtual ~Options();
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  // How the program ends, if it does not run: the help was shown, or something is wrong. Of the ranks of a job one speaks.
  std::optional<int> read(int argc, char** argv, bool speaks = true);
  bool speaks() const { return speaks_; }
  // Says what is wrong, if this rank speaks. The exit status.
  int complain(const std::string& problem, int status = kFailed) const;
  // The end of a program: what it computed is right or not, and its results have found their place or not.
  int end(bool right, const std::string& problem = {}) const { return problem.empty() ? !right : complain(problem); }

 protected:
  // What is wrong with values that are good one by one: empty, or one line for the user.
  virtual std::string check() { return {}; }
  void require(const char* name);

  bool flag(bool& value, const char* name, const char* help);
  std::string text(std::string& value, const char* name, const char* help);
  double real(double& value, const char* name, double preset, double lowest, double highest, const char* help);
  template <class Integer>
  Integer number(Integer& value, const char* name, std::int64_t preset, std::int64_t lowest, std::int64_t highest,
                 const char* help) {
    whole(
        &value, [](void* at, std::int64_t given) { *static_cast<Integer*>(at) = Integer(given); }, name, preset, lowest,
        highest, help);
    return Integer(preset);
  }
  Numbers numbers(Numbers& values, const char* name, Numbers preset, std::int64_t lowest, std::int64_t highest,
                  const char* help);
  std::string word(std::string& value, const char* name, const char* preset, const std::vector<std::string>& words,
                   const char* help);
  // Words of an enumeration, in its order.
  template <class Value, std::size_t kCount>
  Value word(Value& value, const char* name, Value preset, const char* const (&words)[kCount], const char* help) {
    choice(
        &value, [](void* at, const std::vector<std::size_t>& given) { *static_cast<Value*>(at) = Value(given[0]); },
        name, false, {words, words + kCount}, {std::size_t(preset)}, help);
    return preset;
  }
  template <class Value, std::size_t kCount>
  std::vector<Value> words(std::vector<Value>& values, const char* name, const std::vector<Value>& preset,
                           const char* const (&words)[kCount], const char* help) {
    const auto set = [](void* at, const std::vector<std::size_t>& given) {
      auto& taken = *static_cast<std::vector<Value>*>(at);
      taken.clear();
      for (const std::size_t word : given) taken.push_back(Value(word));
    };
    std::vector<std::size_t> chosen;
    for (const Value value : preset) chosen.push_back(std::size_t(value));
    choice(&values, set, name, true, {words, words + kCount}, chosen, help);
    return preset;
  }
  // What is no option: at least one.
  std::vector<std::string> others(std::vector<std::string>& values, const char* name, const char* help);

 private:
  void whole(void* at, void (*set)(void*, std::int64_t), const char* name, std::int64_t preset, std::int64_t lowest,
             std::int64_t highest, const char* help);
  void choice(void* at, void (*set)(void*, const std::vector<std::size_t>&), const char* name, bool many,
              const std::vector<std::string>& words, const std::vector<std::size_t>& preset, const char* help);

  const char* program_;
  struct Known;
  std::unique_ptr<Known> known_;
  bool speaks_ = true;
};

// A program of one process, from its command line to its exit status.
template <class Options>
int run(int argc, char** argv, int (*program)(const Options&)) {
  Options options;
  if (const auto ended = options.read(argc, argv)) return *ended;
  try {
    return program(options);
  } catch (const std::exception& error) {
    return options.complain(error.what());
  }
}

}  // namespace kit
