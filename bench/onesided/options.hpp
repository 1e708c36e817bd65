// SPDX-License-Identifier: BSD-3-Clause
// Command line of the one-sided benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../apps/kit/ranks.hpp"
#include "operation.hpp"

namespace bench {

enum class Target { idle, computing };
inline constexpr const char* kTargets[] = {"idle", "computing"};

struct Options : kit::Options {
  Options()
      : kit::Options(
            "onesided",
            "One-sided operations, and how much of them hides behind computation of the origin. For each size and "
            "target:\n"
            "  t_pure     the operation and its completion (flush, quiet), nothing else\n"
            "  t_compute  a fixed amount of work, no communication\n"
            "  t_total    operation, the same work, completion\n"
            "Median over the repeats, of the slowest origin; efficiency = max(t_pure, t_compute) / t_total. The lower "
            "half\nof the ranks are origins, each has a target in the upper half; an even number of ranks is needed.") {
  }
  Kind operation = word(operation, "--operation", Kind::put, kKinds,
                        "fetch_and_op has 8 bytes, put_rate is many puts before one completion");
  Numbers sizes = numbers(sizes, "--sizes", {8}, 1, std::int64_t(1) << 30, "bytes of each message");
  std::vector<Target> targets =
      words(targets, "--targets", {Target::idle, Target::computing}, kTargets,
            "what the target does: idle waits in a barrier; computing calls its library between pieces of work only");
  int messages = number(messages, "--messages", 64, 1, 1000000, "of put_rate before one completion");
  int repeats = number(repeats, "--repeats", 20, 1, 1000000, "measured repeats, the three kinds in turns");
  int warmup = number(warmup, "--warmup", 3, 0, 1000000, "repeats before that");
  Numbers work_iterations = numbers(work_iterations, "--work-iterations", {}, 0, kit::kUnlimited,
                                    "the origin's work for each row, as an earlier run reported it; without it the "
                                    "work is set once for each row so that it lasts about t_pure");
  std::int64_t piece_iterations = number(piece_iterations, "--piece-iterations", 0, 1, kit::kUnlimited,
                                         "a computing target's piece of work, as an earlier run reported it");
  std::int64_t piece_ns = number(piece_ns, "--piece-ns", 10'000'000, 1, kit::kUnlimited, "the same, as a time");
  bool verify = flag(verify, "--verify",
                     "checks all that is moved in every repeat, each with data of its own; the clock stands meanwhile");
  std::string json = text(json, "--json", "rank 0 writes the rows to that file");

  std::size_t row_count() const { return sizes.size() * targets.size(); }

 private:
  std::string check() override {
    if (operation == Kind::fetch_and_op && sizes != Numbers{8})
      return "--sizes is not 8 (fetch_and_op works on 8 bytes). Leave it out, or use another operation";
    if (!work_iterations.empty() && work_iterations.size() != row_count())
      return "the amounts of work are not as many as the rows (one for each size and target is needed). Give " +
             std::to_string(row_count()) + " of them";
    if (kit::ranks() % 2 == 0) return {};
    return std::to_string(kit::ranks()) + " ranks are not usable (every origin needs a target). Start an even number";
  }
};

}  // namespace bench
