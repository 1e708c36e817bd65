// SPDX-License-Identifier: BSD-3-Clause
// What balancing brings: each rank has pieces of work in each step, all of them tasks, and steps end with a barrier. One rank at a
// time has more of them, or an executor that is slower; which one changes. `offpath bench tasks` runs it.
#include "piece.hpp"

#include <offpath/offpath.h>

#include "arguments/arguments.hpp"
#include <mpi.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what, const char* why) {
  std::fprintf(stderr, "bench tasks: %s: %s\n", what, why);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

struct Options {
  std::string library, speeds, json;
  uint32_t steps = 100, pieces = 12, bytes = 8192, period = 50, times = 3;
  double ms = 1;
  uint64_t rounds = 0;
  std::string uneven = "none";  // or loaded, slow
};

class Rank {
 public:
  explicit Rank(const Options& options) : options_(options) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    offpath_attach_params_t attach{};
    attach.struct_bytes = sizeof(attach);
    uint8_t id[OFFPATH_TEAM_ID_BYTES];
    std::random_device random;
    for (uint8_t& byte : attach.job_token) byte = static_cast<uint8_t>(random());
    for (uint8_t& byte : id) byte = static_cast<uint8_t>(random());
    MPI_Bcast(attach.job_token, sizeof(attach.job_token), MPI_BYTE, 0, MPI_COMM_WORLD);
    MPI_Bcast(id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
    offpath_error_t error{};
    if (offpath_session_attach(&attach, &session_, &error) != OFFPATH_OK) give_up("attach", error.text);
    join(id);
    piece_ = function("piece", kPieceSignature);
    who_ = function("who", "who(out int32) 1");
    find_executor();
    make_memory();
  }
  ~Rank() {
    MPI_Barrier(MPI_COMM_WORLD);
    set_speed(1);
    offpath_team_destroy(team_);
    offpath_session_detach(session_);
  }

  double step(uint32_t number) {
    const int chosen = static_cast<int>(number / options_.period) % size_;
    if (options_.uneven == "slow" && number % options_.period == 0) set_speed(rank_ == chosen ? options_.times : 1);
    const bool more = options_.uneven == "loaded" && rank_ == chosen;
    const uint32_t count = options_.pieces * (more ? options_.times : 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = Clock::now();
    for (uint32_t i = 0; i < count; ++i) submit(i, number);
    for (offpath_op_t* op : ops_) {
      if (offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK) give_up("a task failed", "see above");
      offpath_op_free(op);
    }
    ops_.clear();
    const double own = std::chrono::duration<double>(Clock::now() - begin).count();
    offpath_session_note_wait(session_, now_ns(), 0);
    double longest = 0;
    // All nodes share this machine's cores: who waits must not take what others need.
    MPI_Request request;
    int done = 0;
    MPI_Iallreduce(&own, &longest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD, &request);
    for (const timespec pause{0, 50000}; done == 0; nanosleep(&pause, nullptr))
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    offpath_session_note_wait(session_, 0, 0);
    check(count, number);
    return longest;
  }

  int number() const { return rank_; }

 private:
  static uint64_t now_ns() { return static_cast<uint64_t>(Clock::now().time_since_epoch().count()); }

  void join(const uint8_t* id) {
    std::vector<uint8_t> addresses(size_t(size_) * OFFPATH_ADDRESS_MAX_BYTES);
    uint8_t own[OFFPATH_ADDRESS_MAX_BYTES] = {};
    size_t bytes = 0;
    if (offpath_session_address(session_, own, sizeof(own), &bytes) != OFFPATH_OK) give_up("address", "none");
    MPI_Allgather(own, sizeof(own), MPI_BYTE, addresses.data(), sizeof(own), MPI_BYTE, MPI_COMM_WORLD);
    offpath_team_params_t params{};
    params.struct_bytes = sizeof(params);
    params.rank = uint32_t(rank_);
    params.size = uint32_t(size_);
    params.address_stride_bytes = OFFPATH_ADDRESS_MAX_BYTES;
    std::memcpy(params.id, id, sizeof(params.id));
    params.addresses = addresses.data();
    offpath_error_t error{};
    if (offpath_team_create(session_, &params, &team_, &error) != OFFPATH_OK) give_up("team", error.text);
  }

  offpath_function_t* function(const char* name, const char* signature) {
    const offpath_function_params_t params{sizeof(params), 0, options_.library.c_str(), name, signature};
    offpath_error_t error{};
    offpath_function_t* out = nullptr;
    if (offpath_function_register(session_, &params, &out, &error) != OFFPATH_OK) give_up("register", error.text);
    return out;
  }

  // Of several executors the one that happens to answer; the benchmark has one for each rank.
  void find_executor() {
    int32_t process = 0;
    const offpath_task_range_t range{&process, sizeof(process), OFFPATH_TASK_OUT, 0};
    offpath_task_params_t params{};
    params.struct_bytes = sizeof(params);
    params.flags = OFFPATH_TASK_STAYS_HOME;
    params.function = who_;
    params.ranges = &range;
    params.ranges_count = 1;
    offpath_op_t* op = nullptr;
    if (offpath_task_submit(session_, &params, &op) != OFFPATH_OK || offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK)
      give_up("executor", "it does not answer");
    offpath_op_free(op);
    executor_ = process;
  }

  void set_speed(uint32_t times) const {
    std::ofstream(options_.speeds + "/" + std::to_string(executor_)) << times << '\n';
  }

  void make_memory() {
    const size_t most = size_t{options_.pieces} * options_.times;
    void* memory = nullptr;
    if (offpath_memory_allocate(session_, 2 * most * options_.bytes, &memory) != OFFPATH_OK) give_up("memory", "none");
    in_ = static_cast<double*>(memory);
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

  void submit(uint32_t index, uint32_t step) {
    Piece what{uint64_t(options_.ms * 1e6), options_.rounds, ""};
    std::snprintf(what.speeds, sizeof(what.speeds), "%s", options_.speeds.c_str());
    const offpath_task_range_t ranges[2] = {{in_ + content_of(index, step), options_.bytes, OFFPATH_TASK_IN, 0},
                                            {out_ + index * doubles(), options_.bytes, OFFPATH_TASK_OUT, 0}};
    offpath_task_params_t params{};
    params.struct_bytes = sizeof(params);
    params.function = piece_;
    params.argument = &what;
    params.argument_bytes = sizeof(what);
    params.ranges = ranges;
    params.ranges_count = 2;
    offpath_op_t* op = nullptr;
    if (offpath_task_submit(session_, &params, &op) != OFFPATH_OK) give_up("submit", "refused");
    ops_.push_back(op);
  }

  // Each result has the bits of its computation here. None is left for the next step.
  void check(uint32_t count, uint32_t step) {
    for (uint32_t i = 0; i < count; ++i) {
      const double* expected = expected_.data() + content_of(i, step);
      if (std::memcmp(out_ + i * doubles(), expected, doubles() * sizeof(double)) != 0)
        give_up("a result is wrong", "this is a bug");
      std::fill_n(out_ + i * doubles(), doubles(), -1);
    }
  }

  const Options& options_;
  int rank_ = 0, size_ = 1;
  offpath_session_t* session_ = nullptr;
  offpath_team_t* team_ = nullptr;
  offpath_function_t *piece_ = nullptr, *who_ = nullptr;
  int executor_ = 0;
  double *in_ = nullptr, *out_ = nullptr;
  std::vector<double> expected_;  // of all pieces
  std::vector<offpath_op_t*> ops_;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Options options;
  arguments::Arguments app("balance", "Measures what balancing of tasks brings.");
  app.text("--functions", options.library, "shared object with the functions");
  app.text("--speeds", options.speeds, "folder for how slow executors are");
  app.number("--steps", options.steps, 1, 1000000, "that are timed");
  app.number("--pieces", options.pieces, 1, 300, "of each rank in a step");
  app.number("--times", options.times, 1, 100, "as many, or as slow, is the chosen rank");
  app.number("--period", options.period, 1, 1000000, "steps until another rank is chosen");
  app.number("--bytes", options.bytes, 8, 1 << 26, "that a piece reads, and writes");
  app.real("--ms", options.ms, 0, 10000, "that a piece waits");
  app.number("--rounds", options.rounds, 0, arguments::kUnlimited, "that a piece computes");
  app.word("--uneven", options.uneven, {{"none", "none"}, {"loaded", "loaded"}, {"slow", "slow"}}, "what is uneven");
  app.text("--json", options.json, "file for the results");
  for (const char* name : {"--functions", "--speeds"}) app.required(name);
  if (const auto status = app.done(argc, argv)) return *status;
  {
    Rank rank(options);
    rank.step(0);  // executors are up, functions are loaded, and their cost is known
    const auto begin = Clock::now();
    std::vector<double> seconds;
    for (uint32_t number = 0; number < options.steps; ++number) seconds.push_back(rank.step(number));
    const double total = std::chrono::duration<double>(Clock::now() - begin).count();
    if (rank.number() == 0) {
      std::printf("%u steps in %.3f s\n", options.steps, total);
      if (!options.json.empty()) {
        std::ofstream file(options.json);
        file << nlohmann::json{{"total_s", total}, {"steps_s", seconds}}.dump() << '\n';
        if (!file.flush()) give_up("cannot write", options.json.c_str());
      }
    }
  }
  MPI_Finalize();
  return 0;
}
