// SPDX-License-Identifier: BSD-3-Clause
// What balancing brings: each rank has pieces of work in each step, all of them tasks, and steps end with a barrier. One rank at a
// time has more of them, or an executor that is slower; which one changes. `offpath bench tasks` runs it.
#include "piece.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/ranks.hpp"
#include "../../apps/kit/report.hpp"
#include "../../apps/task_session/session.hpp"

namespace {

enum class Uneven { none, loaded, slow };
constexpr const char* kUneven[] = {"none", "loaded", "slow"};

struct Options : kit::Options {
  Options() : kit::Options("balance", "Measures what balancing of tasks brings.") {
    for (const char* name : {"--functions", "--speeds"}) require(name);
  }
  std::string library = text(library, "--functions", "shared object with the functions");
  std::string speeds = text(speeds, "--speeds", "folder for how slow executors are");
  uint32_t steps = number(steps, "--steps", 100, 1, 1000000, "that are timed");
  uint32_t pieces = number(pieces, "--pieces", 12, 1, 300, "of each rank in a step");
  uint32_t times = number(times, "--times", 3, 1, 100, "as many, or as slow, is the chosen rank");
  uint32_t period = number(period, "--period", 50, 1, 1000000, "steps until another rank is chosen");
  uint32_t bytes = number(bytes, "--bytes", 8192, 8, 1 << 26, "that a piece reads, and writes");
  double ms = real(ms, "--ms", 1, 0, 10000, "that a piece waits");
  uint64_t rounds = number(rounds, "--rounds", 0, 0, kit::kUnlimited, "that a piece computes");
  Uneven uneven = word(uneven, "--uneven", Uneven::none, kUneven, "what is uneven");
  std::string json = text(json, "--json", "file for the results");
};

class Rank {
 public:
  Rank(const Options& options, task_session::Session& session) : options_(options), session_(session) {
    make_memory();
    submit(0, 0, OFFPATH_TASK_STAYS_HOME);
    session_.wait();
    executor_ = session_.executor();
  }
  ~Rank() {
    kit::barrier();
    set_speed(1);
  }

  double step(uint32_t number) {
    const int chosen = static_cast<int>(number / options_.period) % kit::ranks();
    const bool is_chosen = kit::rank() == chosen;
    if (options_.uneven == Uneven::slow && number % options_.period == 0) set_speed(is_chosen ? options_.times : 1);
    const bool more = options_.uneven == Uneven::loaded && is_chosen;
    const uint32_t count = options_.pieces * (more ? options_.times : 1);
    kit::barrier();
    const double begin = kit::seconds_now();
    for (uint32_t i = 0; i < count; ++i) submit(i, number);
    session_.wait();
    const double own = kit::seconds_now() - begin;
    session_.note_wait(true);
    double longest = 0;
    // All nodes share this machine's cores: who waits must not take what others need.
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    for (; done == 0; kit::sleep_ns(50000)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    session_.note_wait(false);
    check(count, number);
    return longest;
  }

 private:
  void set_speed(uint32_t times) const {
    std::ofstream(options_.speeds + "/" + std::to_string(executor_)) << times << '\n';
  }

  void make_memory() {
    const size_t most = size_t{options_.pieces} * options_.times;
    in_ = static_cast<double*>(session_.allocate(2 * most * options_.bytes));
    out_ = in_ + most * doubles();
    for (size_t i = 0; i < most * doubles(); ++i) in_[i] = double(i % 1009);  // a prime: all pieces differ
    std::fill_n(out_, most * doubles(), -1);
    expected_.resize(most * doubles());
    for (size_t i = 0; i < expected_.size(); i += doubles())
      relax(in_ + i, expected_.data() + i, doubles(), options_.rounds);
  }

  size_t doubles() const { return options_.bytes / sizeof(double); }

  // In each step another one's content for each piece, and nothing of an earlier result.
  size_t content_of(uint32_t index, uint32_t step) const {
    const size_t most = expected_.size() / doubles();
    return (index + step) % most * doubles();
  }

  void submit(uint32_t index, uint32_t step, uint32_t flags = 0) {
    Piece what{uint64_t(options_.ms * 1e6), options_.rounds, ""};
    std::snprintf(what.speeds, sizeof(what.speeds), "%s", options_.speeds.c_str());
    const offpath_task_range_t ranges[2] = {{in_ + content_of(index, step), options_.bytes, OFFPATH_TASK_IN, 0},
                                            {out_ + index * doubles(), options_.bytes, OFFPATH_TASK_OUT, 0}};
    session_.submit(what, ranges, 0, flags);
  }

  // Each result has the bits of its computation here. None is left for the next step.
  void check(uint32_t count, uint32_t step) {
    for (uint32_t i = 0; i < count; ++i) {
      const double* expected = expected_.data() + content_of(i, step);
      if (std::memcmp(out_ + i * doubles(), expected, doubles() * sizeof(double)) != 0)
        session_.give_up("a result is wrong", "this is a bug");
      std::fill_n(out_ + i * doubles(), doubles(), -1);
    }
  }

  const Options& options_;
  task_session::Session& session_;
  uint32_t executor_ = 0;  // process; the benchmark has one for each rank
  double *in_ = nullptr, *out_ = nullptr;
  std::vector<double> expected_;  // of all pieces
};

int run(const Options& options) {
  std::string problem;
  task_session::Session session({"balance", options.library.c_str(), "piece", kPieceSignature}, problem);
  if (!problem.empty()) return options.complain(problem);
  Rank rank(options, session);
  rank.step(0);  // executors are up, functions are loaded, and their cost is known
  const double begin = kit::seconds_now();
  std::vector<double> seconds;
  for (uint32_t number = 0; number < options.steps; ++number) seconds.push_back(rank.step(number));
  const double total = kit::seconds_now() - begin;
  if (!options.speaks()) return 0;
  std::printf("%u steps in %.3f s\n", options.steps, total);
  return options.end(true, kit::write_json(options.json, {{"total_s", total}, {"steps_s", seconds}}));
}

}  // namespace

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, run); }
