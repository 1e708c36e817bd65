// SPDX-License-Identifier: BSD-3-Clause
// A job of `offpath bench guest`: rounds of collectives and messages, for some seconds, and how many there were. Each
// thread has a communicator of its own. What is received is checked.
#include <mpi.h>

#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/ranks.hpp"
#include "../../apps/kit/report.hpp"
#include "../collectives/work.hpp"

namespace bench {
namespace {

struct Options : kit::Options {
  Options() : kit::Options("load", "Rounds of collectives and messages, for some seconds.") {}
  double seconds = real(seconds, "--seconds", 1, 0.001, 1e6, "so long");
  int threads = number(threads, "--threads", 1, 1, 64, "of each rank");
  int elements = number(elements, "--elements", 1024, 1, 1 << 24, "of 4 bytes, of a block");
  int work = number(work, "--work", 50, 0, 1 << 30, "iterations of computation in a round");
  std::string ready = text(ready, "--ready", "rank 0 makes that file when all could begin");
  std::string go = text(go, "--go", "all begin when that file is there");
  std::string json = text(json, "--json", "rank 0 writes the rounds to that file");

 private:
  std::string check() override {
    int level = 0;
    MPI_Query_thread(&level);
    return threads > 1 && level < MPI_THREAD_MULTIPLE ? "this MPI serves one thread only. Use --threads 1" : "";
  }
};

constexpr int kGoPatienceS = 300;

// Asleep until the file is there: jobs that are to run beside each other begin together.
bool wait_for(const std::string& file) {
  const std::int64_t begin = kit::now_ns();
  struct stat found = {};
  while (stat(file.c_str(), &found) != 0) {
    if (kit::now_ns() - begin > kGoPatienceS * INT64_C(1'000'000'000)) return false;
    kit::sleep_ns(5'000'000);
  }
  return true;
}

class Rounds {
 public:
  Rounds(const Options& options, MPI_Comm world) : options_(options) {
    MPI_Comm_dup(world, &communicator_);
    MPI_Comm_rank(communicator_, &rank_);
    MPI_Comm_size(communicator_, &ranks_);
    const std::size_t all = std::size_t(options.elements) * std::size_t(ranks_);
    mine_.resize(all);
    exchanged_.resize(all);
    gathered_.resize(all);
    sums_.resize(std::size_t(options.elements));
    spread_.resize(std::size_t(options.elements));
    from_left_.resize(std::size_t(options.elements));
  }
  ~Rounds() { MPI_Comm_free(&communicator_); }
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;

  // Rank 0's clock says when it is enough, and all hear it in the same round.
  void run(std::int64_t begin_ns) {
    const auto length_ns = std::int64_t(options_.seconds * 1e9);
    std::int64_t goes_on = 1;
    while (goes_on != 0) {
      good_ = round() && good_;
      ++count_;
      goes_on = kit::now_ns() - begin_ns < length_ns ? 1 : 0;
      MPI_Bcast(&goes_on, 1, MPI_INT64_T, 0, communicator_);
    }
  }
  std::int64_t count() const { return count_; }
  bool good() const { return good_; }

 private:
  // Small, so that sums of all ranks are exact.
  std::int32_t value(int from, int to, int i) const { return from * 31 + to * 17 + i % 97 + int(count_ % 1009); }

  bool round() {
    const int n = options_.elements, right = (rank_ + 1) % ranks_, left = (rank_ + ranks_ - 1) % ranks_;
    const int root = int(count_ % ranks_);
    for (int to = 0; to < ranks_; ++to)
      for (int i = 0; i < n; ++i) mine_[index(to, i)] = value(rank_, to, i);
    if (rank_ == root)
      for (int i = 0; i < n; ++i) spread_[std::size_t(i)] = value(root, root, i);
    MPI_Request requests[4];
    MPI_Ialltoall(mine_.data(), n, MPI_INT32_T, exchanged_.data(), n, MPI_INT32_T, communicator_, &requests[0]);
    MPI_Iallreduce(mine_.data(), sums_.data(), n, MPI_INT32_T, MPI_SUM, communicator_, &requests[1]);
    MPI_Ibcast(spread_.data(), n, MPI_INT32_T, root, communicator_, &requests[2]);
    MPI_Iallgather(mine_.data(), n, MPI_INT32_T, gathered_.data(), n, MPI_INT32_T, communicator_, &requests[3]);
    const volatile double worked = work(options_.work);
    static_cast<void>(worked);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    bool right_data = checked();
    MPI_Sendrecv(&mine_[index(right, 0)], n, MPI_INT32_T, right, 0, from_left_.data(), n, MPI_INT32_T, left, 0,
                 communicator_, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; ++i) right_data &= from_left_[std::size_t(i)] == value(left, rank_, i);
    std::int32_t one = rank_ + 1, all = 0;
    MPI_Allreduce(&one, &all, 1, MPI_INT32_T, MPI_SUM, communicator_);
    right_data &= all == ranks_ * (ranks_ + 1) / 2;
    MPI_Barrier(communicator_);
    return right_data;
  }

  bool checked() const {
    bool good = true;
    const int root = int(count_ % ranks_);
    for (int i = 0; i < options_.elements; ++i) {
      std::int32_t sum = 0;
      for (int from = 0; from < ranks_; ++from) {
        good &= exchanged_[index(from, i)] == value(from, rank_, i) && gathered_[index(from, i)] == value(from, 0, i);
        sum += value(from, 0, i);
      }
      good &= sums_[std::size_t(i)] == sum && spread_[std::size_t(i)] == value(root, root, i);
    }
    return good;
  }

  std::size_t index(int block, int i) const {
    return std::size_t(block) * std::size_t(options_.elements) + std::size_t(i);
  }

  const Options& options_;
  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  std::int64_t count_ = 0;
  bool good_ = true;
  std::vector<std::int32_t> mine_, exchanged_, gathered_, sums_, spread_, from_left_;
};

int run(const Options& options) {
  std::vector<std::unique_ptr<Rounds>> rounds;
  for (int i = 0; i < options.threads; ++i) rounds.push_back(std::make_unique<Rounds>(options, MPI_COMM_WORLD));
  kit::barrier();
  std::string problem = options.speaks() ? kit::write_json(options.ready, true) : "";
  if (!options.go.empty() && !wait_for(options.go)) problem = "nobody has said go";
  if (!problem.empty()) {
    MPI_Abort(MPI_COMM_WORLD, options.complain(problem));
  }
  const std::int64_t begin = kit::now_ns();
  std::vector<std::thread> others;
  for (int i = 1; i < options.threads; ++i) others.emplace_back([&rounds, i, begin] { rounds[i]->run(begin); });
  rounds[0]->run(begin);
  for (std::thread& other : others) other.join();
  const std::int64_t took = kit::now_ns() - begin;
  std::int64_t count = 0, good = 1;
  for (const auto& each : rounds) {
    count += each->count();
    good &= each->good() ? 1 : 0;
  }
  rounds.clear();
  good = kit::minimum(good);
  if (options.speaks()) {
    std::printf("%lld rounds in %.3f s%s\n", static_cast<long long>(count), double(took) / 1e9,
                good != 0 ? "" : "  WRONG");
    problem = kit::write_json(
        options.json, {{"ranks", kit::ranks()}, {"rounds_count", count}, {"took_ns", took}, {"verified", good != 0}});
  }
  return options.end(good != 0, problem);
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, bench::run, kit::Threads::multiple); }
