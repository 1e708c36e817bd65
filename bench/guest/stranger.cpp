// SPDX-License-Identifier: BSD-3-Clause
// offpath-stranger --does sleeps|computes --core N: an unrelated program on a core that others use. It says when it
// begins, runs until SIGTERM and then says, as a line of JSON on stdout, what it got of that core.

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "../../apps/kit/options.hpp"
#include "../collectives/work.hpp"

namespace {

constexpr std::int64_t kAskedNs = 10'000'000;
constexpr std::int64_t kGapsNs[] = {100'000'000, 1'000'000'000};
constexpr std::int64_t kPieceIterations = 1000;  // below a millisecond: so late the end is seen

constexpr const char* kDoes[] = {"sleeps", "computes"};

volatile std::sig_atomic_t ended = 0;

// Sleeps again and again, and keeps by how much it came late.
kit::Json sleeps() {
  std::vector<std::int64_t> late;
  while (ended == 0) {
    const timespec asked = {0, kAskedNs};
    const std::int64_t begin = kit::now_ns();
    const bool whole = nanosleep(&asked, nullptr) == 0;
    const std::int64_t after = kit::now_ns() - begin - kAskedNs;
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
kit::Json computes() {
  std::int64_t pieces = 0;
  volatile double result = 0;
  const std::int64_t begin = kit::now_ns();
  for (; ended == 0; ++pieces) result = result + bench::work(kPieceIterations);
  return {{"pieces_count", pieces}, {"took_ns", kit::now_ns() - begin}};
}

struct Options : kit::Options {
  Options() : kit::Options("offpath-stranger", "An unrelated program on a core that others use, until SIGTERM.") {}
  bool computing = word(computing, "--does", false, kDoes, "asks for 10 ms again and again, or works");
  int core = number(core, "--core", 0, 0, CPU_SETSIZE - 1, "where it runs");
};

int run(const Options& options) {
  if (!kit::pin(options.core))
    return options.complain("core " + std::to_string(options.core) + " is not usable (errno " + std::to_string(errno) +
                            "). Give one of this process.");
  std::puts("begins");  // from here on it may be ended
  std::fflush(stdout);
  std::puts((options.computing ? computes() : sleeps()).dump().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ended = 1; };
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGINT, SIG_IGN);  // of a terminal: whoever started it ends it
  return kit::run(argc, argv, run);
}
