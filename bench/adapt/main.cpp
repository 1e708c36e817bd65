// SPDX-License-Identifier: BSD-3-Clause
// One collective in phases that alternate: *hides*, a nonblocking all-to-all behind computation, and *talks*, the same
// all-to-all with nothing to do meanwhile but a small message. Each phase is run three times, a few turns at a time in
// turns and in all orders, on communicators that ask for the host, for the DPU, and for what pays; an MPI library that
// knows no such wish does the same on all three.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include <mpi.h>

#include "../../apps/kit/report.hpp"
#include "../collectives/times.hpp"

namespace bench {
namespace {

struct Options : kit::Options {
  Options() : kit::Options("adapt", "One collective in phases, on communicators that ask for different paths.") {}
  std::int64_t bytes = some(bytes, "--bytes", 1 << 20, "all bytes that a rank sends in one all-to-all");
  std::int64_t turns = some(turns, "--turns", 200, "all-to-alls in a phase on each communicator");
  std::int64_t phases = some(phases, "--phases", 4, "hides, talks, hides, ...: so many");
  std::int64_t messages = some(messages, "--messages", 1, "exchanged with the neighbour in a turn of talks");
  std::int64_t work_times =
      some(work_times, "--work-times", 3, "the work in a turn of hides, in times of the all-to-all alone");
  std::int64_t work_iterations =
      some(work_iterations, "--work-iterations", 0, "the same, as an earlier run reported it");
  std::string json = text(json, "--json", "rank 0 writes the phases to that file");

 private:
  std::int64_t some(std::int64_t& value, const char* name, std::int64_t preset, const char* help) {
    return number(value, name, preset, 1, kit::kUnlimited, help);
  }
};

// What a communicator asks for, under the info key offpath_path.
constexpr const char* kPaths[] = {"host", "dpu", "auto"};
constexpr int kPathCount = 3;
constexpr std::int64_t kTurnsAtATime = 20;
constexpr std::size_t kPage = 4096;

class Program {
 public:
  Program(const Options& options, MPI_Comm communicator) : options_(options), communicator_(communicator) {
    for (int path = 0; path < kPathCount; ++path) {
      MPI_Info info;
      MPI_Info_create(&info);
      MPI_Info_set(info, "offpath_path", kPaths[path]);
      MPI_Comm_dup_with_info(communicator, info, &paths_[path]);
      MPI_Info_free(&info);
    }
    MPI_Comm_rank(communicator, &rank_);
    MPI_Comm_size(communicator, &ranks_);
    block_ = static_cast<int>(std::max<std::int64_t>(options.bytes / ranks_, 1));
    send_.resize(std::size_t(block_) * std::size_t(ranks_));
    receive_.resize(send_.size());
    work_iterations_ = options.work_iterations > 0 ? options.work_iterations : choose_work();
  }

  std::int64_t work_iterations() const { return work_iterations_; }

  ~Program() {
    for (MPI_Comm& path : paths_) MPI_Comm_free(&path);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  struct Phase {
    std::int64_t took_ns[kPathCount] = {};  // the slowest rank
    bool verified = true;
  };

  // The same on all ranks.
  Phase phase(bool hides, int number) {
    Phase result;
    std::array<int, kPathCount> order{0, 1, 2};
    for (std::int64_t turn = 0; turn < options_.turns; turn += kTurnsAtATime) {
      const std::int64_t count = std::min(kTurnsAtATime, options_.turns - turn);
      for (const int path : order) {
        prepare(number);
        MPI_Barrier(communicator_);
        result.took_ns[path] += run(hides, count, paths_[path]);
        result.verified = verify(number) && result.verified;
      }
      // Whom one comes after matters: connections that were idle for a while begin slowly.
      std::next_permutation(order.begin(), order.end());
    }
    MPI_Allreduce(MPI_IN_PLACE, result.took_ns, kPathCount, MPI_INT64_T, MPI_MAX, communicator_);
    return result;
  }

 private:
  // What this rank took.
  std::int64_t run(bool hides, std::int64_t turns, MPI_Comm path) {
    const std::int64_t begin = kit::now_ns();
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      stamp();
      MPI_Request request = start(path);
      if (hides)
        work(work_iterations_);
      else
        talk();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      right_ = has_stamps() && right_;
    }
    return kit::now_ns() - begin;
  }

  // A byte of each page is of this turn alone, so that what an earlier one has left is found out: some microseconds of a
  // turn's milliseconds.
  void stamp() {
    ++stamp_;
    for (std::size_t at = 0; at < send_.size(); at += kPage) send_[at] = stamp_;
  }
  bool has_stamps() const {
    for (std::size_t from = 0; from < std::size_t(ranks_); ++from) {
      const std::size_t mine = std::size_t(rank_) * std::size_t(block_);  // where the block began that came from there
      for (std::size_t at = (mine + kPage - 1) / kPage * kPage; at < mine + std::size_t(block_); at += kPage)
        if (receive_[from * std::size_t(block_) + at - mine] != stamp_) return false;
    }
    return true;
  }

  // All that was received in the last turn is right, and all stamps of the turns before, on all ranks.
  bool verify(int number) const {
    std::int64_t good = right_ ? 1 : 0;
    for (int from = 0; from < ranks_; ++from) {
      for (int i = 0; i < block_; i += 61) {
        if ((std::size_t(rank_) * std::size_t(block_) + std::size_t(i)) % kPage == 0) continue;  // a stamp
        good &= receive_[std::size_t(from) * std::size_t(block_) + std::size_t(i)] == value(from, rank_, i, number);
      }
    }
    return kit::minimum(good) != 0;
  }

  static std::uint8_t value(int from, int to, int i, int number) {
    return std::uint8_t(from * 31 + to * 17 + i * 7 + number * 3);
  }

  void prepare(int number) {
    for (int to = 0; to < ranks_; ++to) {
      for (int i = 0; i < block_; ++i)
        send_[std::size_t(to) * std::size_t(block_) + std::size_t(i)] = value(rank_, to, i, number);
    }
    std::fill(receive_.begin(), receive_.end(), std::uint8_t(0));
  }

  MPI_Request start(MPI_Comm path) {
    MPI_Request request;
    MPI_Ialltoall(send_.data(), block_, MPI_BYTE, receive_.data(), block_, MPI_BYTE, path, &request);
    return request;
  }

  void talk() {
    const int right = (rank_ + 1) % ranks_, left = (rank_ + ranks_ - 1) % ranks_;
    double mine = 1, theirs = 0;
    for (std::int64_t i = 0; i < options_.messages; ++i)
      MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, 0, &theirs, 1, MPI_DOUBLE, left, 0, communicator_, MPI_STATUS_IGNORE);
  }

  std::int64_t choose_work() {
    std::vector<std::int64_t> times;
    for (int i = 0; i < 7; ++i) {
      MPI_Barrier(communicator_);
      const std::int64_t begin = kit::now_ns();
      MPI_Request request = start(paths_[0]);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      times.push_back(kit::now_ns() - begin);
    }
    return calibrate_together(kit::spread(times).median * options_.work_times);
  }

  const Options& options_;
  MPI_Comm communicator_;
  MPI_Comm paths_[kPathCount];
  int rank_ = 0, ranks_ = 1, block_ = 1;
  std::int64_t work_iterations_ = 0;
  std::vector<std::uint8_t> send_, receive_;
  std::uint8_t stamp_ = 0;
  bool right_ = true;
};

int run(const Options& options) {
  Program program(options, MPI_COMM_WORLD);
  kit::Json json = {{"ranks", kit::ranks()},
                    {"bytes", options.bytes},
                    {"turns", options.turns},
                    {"messages", options.messages},
                    {"work_iterations", program.work_iterations()},
                    {"phases", kit::Json::array()}};
  bool good = true;
  for (int number = 0; number < options.phases; ++number) {
    const bool hides = number % 2 == 0;
    const Program::Phase phase = program.phase(hides, number);
    good = good && phase.verified;
    if (!options.speaks()) continue;
    kit::Json row = {{"phase", hides ? "hides" : "talks"}, {"verified", phase.verified}};
    std::printf("%s, ms a turn:", hides ? "hides" : "talks");
    for (int path = 0; path < kPathCount; ++path) {
      row["turn_ns"][kPaths[path]] = phase.took_ns[path] / options.turns;
      std::printf("  %s %.3f", kPaths[path], double(phase.took_ns[path]) / double(options.turns) / 1e6);
    }
    std::printf("%s\n", phase.verified ? "" : "  WRONG");
    std::fflush(stdout);
    json["phases"].push_back(row);
  }
  return options.end(good, options.speaks() ? kit::write_json(options.json, json) : "");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, bench::run); }
