// SPDX-License-Identifier: BSD-3-Clause
// What `offpath bench faults` and tests run while a service is killed: random collectives and messages, the same on all ranks,
// several under way on two communicators. The rank that waits first waits while the others block in another call until it has, so all have
// to be done again by ranks that are elsewhere. Every result is checked, also what must not have been written.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <mpi.h>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/ranks.hpp"
#include "../../apps/kit/report.hpp"
#include "operation.hpp"

namespace faults {
namespace {

std::vector<Kind> collectives() {
  std::vector<Kind> kinds;
  for (int kind = 0; !is_message(Kind(kind)); ++kind) kinds.push_back(Kind(kind));
  return kinds;
}

struct Options : kit::Options {
  Options() : kit::Options("faults", "Random collectives and messages whose results are checked, for some seconds.") {}
  double seconds = real(seconds, "--seconds", 1, 0, 1e6, "so long");
  std::int64_t seed = number(seed, "--seed", 1, 0, INT32_MAX, "of what is drawn");
  std::vector<Kind> kinds = words(kinds, "--kinds", collectives(), kKinds, "what to draw from");
  int bytes = number(bytes, "--bytes", 1 << 20, 4, 1 << 28, "the most that a rank sends or receives in one of them");
  int depth = number(depth, "--depth", 5, 1, 64, "at most so many are under way");
  bool persistent = flag(persistent, "--persistent", "some are persistent (those of MPICH 4.0 crash by themselves)");
  bool return_errors = flag(return_errors, "--return-errors", "counts errors and goes on; else MPI ends the program");
  std::string ready = text(ready, "--ready", "rank 0 makes that file after some steps");
  std::string until = text(until, "--until", "the program ends some steps after that file is there, not by seconds");
  std::string json = text(json, "--json", "rank 0 writes what was found to that file");
};

constexpr int kStepsPerLook = 4;  // at the clock of rank 0, or for a file
constexpr int kStepsUntilReady = 10;

class Program {
 public:
  explicit Program(const Options& options)
      : options_(options),
        random_(std::uint32_t(options.seed)),
        rank_(kit::rank()),
        ranks_(kit::ranks()),
        operations_(std::size_t(options.depth)),
        ones_(std::size_t(ranks_), 1) {
    for (MPI_Comm& comm : comms_) {
      MPI_Comm_dup(MPI_COMM_WORLD, &comm);
      if (options.return_errors) MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    }
  }
  ~Program() {
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run() {
    const std::int64_t end_ns = kit::now_ns() + std::int64_t(options_.seconds * 1e9);
    for (int goes_on = 1; goes_on != 0; ++steps_) {
      step();
      if (steps_ == kStepsUntilReady && rank_ == 0 && !options_.ready.empty()) std::ofstream(options_.ready).flush();
      if (steps_ % kStepsPerLook != 0) continue;
      if (options_.until.empty())
        goes_on = kit::now_ns() < end_ns ? 1 : 0;
      else if (std::ifstream(options_.until).good())
        goes_on = --looks_left_;
      blocking([&] { MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD); });
    }
    for (Operation& operation : operations_) {
      if (operation.under_way()) finish(operation, 0), end_sending(operation);
      operation.close();
    }
  }

  std::int64_t steps() const { return steps_; }
  std::int64_t checked() const { return checked_; }
  std::int64_t failed() const { return failed_; }
  std::int64_t wrong() const { return wrong_; }
  double longest_wait_s() const { return 1e-9 * double(longest_ns_); }

 private:
  int draw(int below) { return int(random_() % std::uint32_t(below)); }

  // Runs call(), which blocks.
  template <class Call>
  void blocking(Call call) {
    const std::int64_t begin = kit::now_ns();
    call();
    longest_ns_ = std::max(longest_ns_, kit::now_ns() - begin);
  }

  void step() {
    Operation& operation = operations_[std::size_t(draw(options_.depth))];
    MPI_Comm comm = comms_[std::size_t(draw(int(comms_.size())))];
    if (operation.under_way()) {
      finish_unevenly(operation, comm);
      return;
    }
    const Choice choice = Choice::draw(random_, options_.kinds, options_.bytes, ranks_, options_.persistent, number_++);
    const int code = operation.post(choice, comm, spaced_.get());
    if (code != MPI_SUCCESS) note_error(operation, code);
  }

  // One rank waits, the others block in another call until it has.
  void finish_unevenly(Operation& operation, MPI_Comm comm) {
    const int first = draw(ranks_), call = draw(5), way = draw(3);
    if (rank_ == first) finish(operation, way);
    blocking([&] { meet(call, first, comm); });
    if (rank_ != first) finish(operation, way);
    end_sending(operation);
  }

  void end_sending(Operation& operation) {
    int code = MPI_SUCCESS;
    blocking([&] { code = operation.end_sending(); });
    if (code != MPI_SUCCESS) note_error(operation, code);
  }

  void meet(int call, int first, MPI_Comm comm) {
    int word = 0;
    MPI_Comm made;
    if (call < 2 && rank_ == first) {
      for (int to = 0; to < ranks_; ++to)
        if (to != rank_) MPI_Send(&word, 1, MPI_INT, to, 0, comm);
    } else if (call < 2) {
      if (call == 1) MPI_Probe(first, 0, comm, MPI_STATUS_IGNORE);
      MPI_Recv(&word, 1, MPI_INT, first, 0, comm, MPI_STATUS_IGNORE);
    } else if (call == 2) {
      MPI_Barrier(comm);
    } else if (call == 3) {
      MPI_Reduce_scatter(ones_.data(), &word, ones_.data(), MPI_INT, MPI_SUM, comm);
    } else {
      MPI_Comm_split(comm, 0, rank_, &made);
      MPI_Comm_free(&made);
    }
  }

  void finish(Operation& operation, int way) {
    int code = MPI_SUCCESS;
    const bool posted = operation.posted();
    blocking([&] {
      int done = 0, index = 0;
      code = operation.receive();
      if (code != MPI_SUCCESS) return;
      if (way == 0)
        code = MPI_Wait(&operation.request(), MPI_STATUS_IGNORE);
      else if (way == 1)
        code = MPI_Waitany(1, &operation.request(), &index, MPI_STATUS_IGNORE);
      else
        while (done == 0 && code == MPI_SUCCESS) {
          code = MPI_Test(&operation.request(), &done, MPI_STATUS_IGNORE);
          if (done == 0) sched_yield();
        }
      const bool is_received = operation.choice().kind != Kind::probe;  // that of others, as soon as they look for it
      if (code == MPI_SUCCESS && is_received) code = operation.end_sending();
    });
    operation.end();
    if (code != MPI_SUCCESS) note_error(operation, code);
    if (code != MPI_SUCCESS || !posted) return;
    ++checked_;
    const auto at = operation.wrong();
    if (!at) return;
    ++wrong_;
    const Choice& choice = operation.choice();
    std::fprintf(stderr, "faults: WRONG on rank %d: %s %u, %d elements a block%s%s%s, element %zu\n", rank_,
                 kKinds[int(choice.kind)], choice.number, choice.count, choice.in_place ? ", in place" : "",
                 choice.spaced ? ", spaced" : "", choice.persistent ? ", persistent" : "", *at);
  }

  // An error says whose it is and why. Others are as wrong as wrong data.
  void note_error(const Operation& operation, int code) {
    char text[MPI_MAX_ERROR_STRING] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    ++failed_;
    const bool ours = std::strncmp(text, "Offpath: ", 9) == 0;
    if (!ours) ++wrong_;
    std::fprintf(stderr, "%s%s (rank %d, %s %u)\n", ours ? "" : "faults: WRONG error: ", text, rank_,
                 kKinds[int(operation.choice().kind)], operation.choice().number);
  }

  const Options& options_;
  std::mt19937 random_;
  const int rank_, ranks_;
  std::array<MPI_Comm, 2> comms_{};
  const SpacedType spaced_;
  std::vector<Operation> operations_;
  std::vector<int> ones_;
  std::uint32_t number_ = 0;
  int looks_left_ = 12;  // once the file is there
  std::int64_t steps_ = 0, checked_ = 0, failed_ = 0, wrong_ = 0, longest_ns_ = 0;
};

int run(const Options& options) {
  Program program(options);
  program.run();
  const std::int64_t checked = kit::sum(program.checked()), failed = kit::sum(program.failed());
  const std::int64_t wrong = kit::sum(program.wrong());
  const double longest = kit::maximum(program.longest_wait_s());
  if (!options.speaks()) return options.end(wrong == 0);
  std::printf("%lld results checked, %lld wrong\nerrors: %lld\nlongest wait: %.4f s\nverified: %s\n",
              static_cast<long long>(checked), static_cast<long long>(wrong), static_cast<long long>(failed), longest,
              wrong == 0 ? "yes" : "no");
  std::fflush(stdout);
  return options.end(wrong == 0, kit::write_json(options.json, {{"ranks", kit::ranks()},
                                                                {"seed", options.seed},
                                                                {"steps_count", program.steps()},
                                                                {"checked_count", checked},
                                                                {"failed_count", failed},
                                                                {"wrong_count", wrong},
                                                                {"longest_wait_s", longest},
                                                                {"verified", wrong == 0}}));
}

}  // namespace
}  // namespace faults

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, faults::run); }
