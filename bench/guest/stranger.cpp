// SPDX-License-Identifier: BSD-3-Clause
// offpath-stranger --does sleeps|computes --core N: an unrelated program on a core that others use. It says when it
// begins, runs until SIGTERM and then says, as a line of JSON on stdout, what it got of that core.
#include <nlohmann/json.hpp>

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "arguments/arguments.hpp"
#include "../collectives/clocks.hpp"
#include "../collectives/work.hpp"

namespace {

constexpr std::int64_t kAskedNs = 10'000'000;
constexpr std::int64_t kGapsNs[] = {100'000'000, 1'000'000'000};
constexpr std::int64_t kPieceIterations = 1000;  // below a millisecond: so late the end is seen

volatile std::sig_atomic_t ended = 0;

// Sleeps again and again, and keeps by how much it came late.
nlohmann::ordered_json sleeps() {
  std::vector<std::int64_t> late;
  while (ended == 0) {
    const timespec asked = {0, kAskedNs};
    const std::int64_t begin = bench::now_ns();
    const bool whole = nanosleep(&asked, nullptr) == 0;
    const std::int64_t after = bench::now_ns() - begin - kAskedNs;
    if (whole || after > 0) late.push_back(after);  // ended in its sleep, it may have been overdue
  }
  std::sort(late.begin(), late.end());
  const auto longer = [&late](std::int64_t ns) { return late.end() - std::upper_bound(late.begin(), late.end(), ns); };
  const auto at = [&late](std::size_t of_1000) {
    return late.empty() ? 0 : late[std::min(late.size() - 1, late.size() * of_1000 / 1000)];
  };
  return {{"sleeps_count", late.size()},
          {"worst_late_ns", late.empty() ? 0 : late.back()},
          {"median_late_ns", at(500)},
          {"p999_late_ns", at(999)},
          {"gaps_over_100ms_count", longer(kGapsNs[0])},
          {"gaps_over_1s_count", longer(kGapsNs[1])}};
}

// Does pieces of work that are all alike.
nlohmann::ordered_json computes() {
  std::int64_t pieces = 0;
  volatile double result = 0;
  const std::int64_t begin = bench::now_ns();
  for (; ended == 0; ++pieces) result = result + bench::work(kPieceIterations);
  return {{"pieces_count", pieces}, {"took_ns", bench::now_ns() - begin}};
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGINT, SIG_IGN);  // of a terminal: whoever started it ends it
  bool computing = false;
  std::int64_t core = 0;
  arguments::Arguments known("offpath-stranger", "An unrelated program on a core that others use, until SIGTERM.");
  known.word("--does", computing, {{"sleeps", false}, {"computes", true}}, "asks for 10 ms again and again, or works");
  known.number("--core", core, 0, CPU_SETSIZE - 1, "where it runs");
  const std::string problem = known.parse(argc, argv);
  if (!problem.empty()) {
    std::fprintf(stderr, "offpath-stranger: %s\n", problem.c_str());
    return 2;
  }
  if (!known.help().empty()) {
    std::fputs(known.help().c_str(), stdout);
    return 0;
  }
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(core, &mask);
  if (sched_setaffinity(0, sizeof(mask), &mask) != 0) {
    std::fprintf(stderr, "offpath-stranger: core %d is not usable (errno %d). Give one of this process.\n", int(core),
                 errno);
    return 1;
  }
  std::puts("begins");  // from here on it may be ended
  std::fflush(stdout);
  std::puts((computing ? computes() : sleeps()).dump().c_str());
  return 0;
}
