// SPDX-License-Identifier: BSD-3-Clause
#include "base/starvation.hpp"

#include "base/process.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

namespace offpath::base {
namespace {

// The words of a line, as numbers.
uint64_t word(std::string_view line, int number) {
  for (; number > 0; --number) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos) return 0;
    line.remove_prefix(space + 1);
  }
  return strtoull(std::string(line.substr(0, line.find_first_of(" \n"))).c_str(), nullptr, 10);
}

}  // namespace

Starvation::Starvation(pid_t process, pid_t thread, const std::string& proc) {
  if (process > 0 && thread > 0)
    folder_ = proc + "/" + std::to_string(process) + "/task/" + std::to_string(thread) + "/";
}

std::optional<ThreadTimes> Starvation::look() const {
  if (folder_.empty()) return std::nullopt;
  const std::string stat = text_of_file(folder_ + "stat");
  const size_t end = stat.rfind(") ");  // of the name, which may hold anything
  static constexpr std::string_view kSlept = "\nvoluntary_ctxt_switches:\t";
  const std::string status = text_of_file(folder_ + "status");
  const size_t slept = status.find(kSlept);
  if (end == std::string::npos || end + 2 >= stat.size() || slept == std::string::npos) return std::nullopt;
  const std::string_view fields = std::string_view(stat).substr(end + 2);
  const auto ticks_per_s = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  constexpr int kUserTime = 11, kSystemTime = 12;  // after the state
  const uint64_t ticks = word(fields, kUserTime) + word(fields, kSystemTime);
  return ThreadTimes{fields[0], ticks * (uint64_t{1000000000} / ticks_per_s),
                     word(std::string_view(status).substr(slept + kSlept.size()), 0)};
}

uint64_t Starvation::since_last_ns(uint64_t now_ns) {
  const auto before = std::exchange(seen_, look());
  const uint64_t passed_ns = now_ns - std::exchange(seen_ns_, now_ns);
  if (!before || !seen_ || before->state != 'R' || seen_->state != 'R' || seen_->slept != before->slept) return 0;
  const uint64_t ran_ns = seen_->ran_ns - before->ran_ns;
  return ran_ns >= passed_ns / 2 ? 0 : passed_ns - ran_ns;
}

uint64_t own_waits_ns() { return word(text_of_file("/proc/thread-self/schedstat"), 1); }

}  // namespace offpath::base
