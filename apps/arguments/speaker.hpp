// SPDX-License-Identifier: BSD-3-Clause
// What a program of several ranks tells its user: one of them speaks, and all end with the same status.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

namespace arguments {

inline constexpr int kFailed = 1, kBadArguments = 2;  // of main()

class Speaker {
 public:
  Speaker(const char* program, bool speaks) : program_(program), speaks_(speaks) {}

  // Shows the help that was asked for, or what is wrong with the arguments. How the program ends then; nothing: it runs.
  std::optional<int> end(const std::string& problem, const std::string& help) const {
    if (!problem.empty()) return complain(problem, kBadArguments);
    if (help.empty()) return std::nullopt;
    if (speaks_) std::fputs(help.c_str(), stdout);
    return 0;
  }
  int complain(const std::string& problem, int status = kFailed) const {
    if (speaks_) std::fprintf(stderr, "%s: %s\n", program_, problem.c_str());
    return status;
  }

 private:
  const char* program_;
  bool speaks_;
};

}  // namespace arguments
