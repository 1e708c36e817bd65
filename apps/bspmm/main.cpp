// SPDX-License-Identifier: BSD-3-Clause
// Block-sparse matrix multiplication by one-sided operations: get tiles, multiply them, update the result.
#include <algorithm>
#include <string>

#include "../kit/report.hpp"
#include "check.hpp"
#include "kernel.hpp"
#include "multiplier.hpp"
#include "pattern.hpp"
#include "report.hpp"
#include "store.hpp"

namespace bspmm {
namespace {

// Seconds from the common start to the end of the last rank.
double timed_run(Kernel& kernel, Variant variant, Computation computation, Store& store, Profile& profile) {
  store.reset();
  const double start = kit::seconds_now();
  kernel.run(variant, computation, profile);
  kit::barrier();
  return kit::maximum(kit::seconds_now() - start);
}

// Of this rank, in a call or until what it needs is complete.
double longest_wait(const Profile& profile) {
  return std::max({profile.longest(Row::counter), profile.longest(Row::get), profile.longest(Row::update),
                   profile.longest(Row::wait)});
}

Outcome measure(const Options& options, Multiplier& multiplier, std::string& problem) {
  const Pattern pattern(options.tiles);
  const Work work = make_work(pattern, options.tile, options.unit);
  Store store(pattern, options.tile, options.seed);
  Kernel kernel(work, store, multiplier);

  Outcome outcome{work.products.size(), work.units.size(), 0, 0, {}, {}};
  Profile profile, warmup, alone;
  timed_run(kernel, options.variant, Computation::yes, store, warmup);
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    outcome.communication += timed_run(kernel, options.variant, Computation::no, store, alone) / options.repeats;
    const std::int64_t used = kit::process_cpu_ns();
    outcome.total += timed_run(kernel, options.variant, Computation::yes, store, profile) / options.repeats;
    outcome.rank_cpu += kit::mean(1e-9 * double(kit::process_cpu_ns() - used)) / options.repeats;
    if (!options.check_product) continue;
    const double error = largest_error(pattern, options.tile, options.seed, store);
    outcome.error = std::max(outcome.error.value_or(0), error);
    kit::barrier();  // nobody adds to a matrix that is looked at
  }
  for (int row = 0; row < kRows; ++row)
    outcome.rows[row] = kit::over_ranks(profile.seconds(Row(row)) / options.repeats);
  outcome.longest_wait = kit::maximum(std::max({longest_wait(warmup), longest_wait(alone), longest_wait(profile)}));
  if (kit::rank() == 0) {
    kit::NumbersFile file(options.field);
    const auto elements = std::size_t(options.tile) * options.tile;
    for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c})
      for (int number = 0; number < pattern.count(); number += kit::ranks())
        file.write(store.mine(matrix, number), elements);
    problem = file.close();
  }
  kit::barrier();
  return outcome;
}

int run_program(const Options& options) {
  std::string problem;
  const auto multiplier = options.who == Who::own ? make_own(options.tile) : make_tasks(options.tile, problem);
  if (!multiplier) return options.complain(problem, kit::kBadArguments);
  const Outcome outcome = measure(options, *multiplier, problem);
  const std::string unwritten = options.speaks() ? report(options, outcome) : "";
  return options.end(outcome.good(), problem.empty() ? unwritten : problem);
}

}  // namespace
}  // namespace bspmm

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, bspmm::run_program); }
