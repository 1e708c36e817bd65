// SPDX-License-Identifier: BSD-3-Clause
// Block-sparse matrix multiplication by one-sided operations: get tiles, multiply them, update the result.
#include <algorithm>
#include <string>

#include "../arguments/numbers_file.hpp"
#include "../arguments/speaker.hpp"
#include "check.hpp"
#include "job.hpp"
#include "kernel.hpp"
#include "options.hpp"
#include "pattern.hpp"
#include "report.hpp"
#include "store.hpp"

namespace bspmm {
namespace {

// Seconds from the common start to the end of the last rank.
double timed_run(const Work& work, Variant variant, Computation computation, Store& store, Profile& profile) {
  store.reset();
  const double start = report::seconds_now();
  run(work, variant, computation, store, profile);
  job::barrier();
  return job::maximum(report::seconds_now() - start);
}

Outcome measure(const Options& options, std::string& problem) {
  const Pattern pattern(options.tiles);
  const Work work = make_work(pattern, options.tile, options.unit);
  Store store(pattern, options.tile, options.seed);

  Outcome outcome{job::ranks(), work.products.size(), work.units.size(), 0, 0, {}, {}};
  Profile profile, warmup, alone;
  timed_run(work, options.variant, Computation::yes, store, warmup);
  for (int repeat = 0; repeat < options.repeats; ++repeat) {
    outcome.communication += timed_run(work, options.variant, Computation::no, store, alone) / options.repeats;
    outcome.total += timed_run(work, options.variant, Computation::yes, store, profile) / options.repeats;
    if (!options.check) continue;
    const double error = largest_error(pattern, options.tile, options.seed, store);
    outcome.error = std::max(outcome.error.value_or(0), error);
    job::barrier();  // nobody adds to a matrix that is looked at
  }
  for (int row = 0; row < kRows; ++row) {
    const double seconds = profile.seconds(Row(row)) / options.repeats;
    outcome.rows[row] = {job::sum(seconds) / job::ranks(), job::maximum(seconds)};
  }
  if (job::rank() == 0) {
    arguments::NumbersFile file(options.field);
    const auto elements = std::size_t(options.tile) * options.tile;
    for (const Matrix matrix : {Matrix::a, Matrix::b, Matrix::c})
      for (int number = 0; number < pattern.count(); number += job::ranks())
        file.write(store.mine(matrix, number), elements);
    problem = file.close();
  }
  job::barrier();
  return outcome;
}

int run_program(int argc, char** argv) {
  const bool speaks = job::rank() == 0;
  const arguments::Speaker speaker("bspmm", speaks);
  Options options;
  std::string problem = parse_options(argc, argv, options);
  if (const auto status = speaker.end(problem, options.help)) return *status;
  const Outcome outcome = measure(options, problem);
  if (speaks) {
    print_report(options, outcome);
    if (problem.empty() && !options.json.empty()) problem = write_json(options, outcome);
    if (!problem.empty()) return speaker.complain(problem);
  }
  return outcome.good() ? 0 : arguments::kFailed;
}

}  // namespace
}  // namespace bspmm

int main(int argc, char** argv) {
  bspmm::job::start(&argc, &argv);
  const int status = bspmm::run_program(argc, argv);
  bspmm::job::stop();
  return status;
}
