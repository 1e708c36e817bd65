// SPDX-License-Identifier: BSD-3-Clause
// What a job's ranks take, stage by stage: time, memory, descriptors and threads. After each stage it waits, if asked to, so that somebody
// can look at what is beside the ranks. Knows nothing of Offpath.
#include <dirent.h>
#include <sys/stat.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <mpi.h>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/options.hpp"
#include "../../apps/kit/report.hpp"

namespace bench {
namespace {

struct Options : kit::Options {
  Options() : kit::Options("scale", "What a job's ranks take, stage by stage.") {}
  int communicators = number(communicators, "--communicators", 8, 1, 1024, "that are made and used");
  int elements = number(elements, "--elements", 32768, 1, 1 << 24, "doubles of a reduction");
  int block = number(block, "--block", 1024, 1, 1 << 20, "bytes from each rank to each");
  int message = number(message, "--message", 1 << 20, 1, 1 << 30, "bytes of a message to the next rank");
  int window = number(window, "--window", 65536, 8, 1 << 30, "bytes of a window");
  int repeats = number(repeats, "--repeats", 5, 1, 1000000, "times that all is done after the first");
  std::string stop = text(stop, "--stop", "after stage N wait until FILE.N is gone, which the first rank makes");
  std::string json = text(json, "--json", "the first rank writes what it found to that file");
};

std::int64_t maximum(std::int64_t mine) {
  std::int64_t all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return all;
}

double mean(double mine, int size) {
  double all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return all / size;
}

int entries(const char* folder) {
  DIR* const opened = opendir(folder);
  int count = -3;  // ".", "..", and the one that is open now
  while (opened != nullptr && readdir(opened) != nullptr) ++count;
  if (opened != nullptr) closedir(opened);
  return count;
}

// What is shared counts in parts.
std::int64_t proportional_kib() {
  long kib = -1;
  if (std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "r")) {
    char line[256];
    while (std::fgets(line, sizeof(line), file) != nullptr && std::sscanf(line, "Pss: %ld", &kib) != 1) continue;
    std::fclose(file);
  }
  return kib;
}

class Stages {
 public:
  Stages(const Options& options, int rank, int size) : options_(options), rank_(rank), size_(size) {}

  // A stage that has taken that long here, the first time; the later times follow. Collective.
  void note(const char* name, std::int64_t first_ns, const std::vector<std::int64_t>& later_ns = {}) {
    std::vector<std::int64_t> slowest;
    for (const std::int64_t each : later_ns) slowest.push_back(maximum(each));
    kit::Json row = {{"stage", name}, {"first_ns", maximum(first_ns)}};
    if (!slowest.empty()) row["later_ns"] = kit::spread(slowest).median;
    row["rank_pss_kib"] = mean(double(proportional_kib()), size_);
    row["rank_descriptors_count"] = maximum(entries("/proc/self/fd"));
    row["rank_threads_count"] = maximum(entries("/proc/self/task") + 1);
    row["rank_cpu_ns"] = mean(double(kit::process_cpu_ns()), size_);
    rows_.push_back(row);
    wait_here();
  }
  kit::Json take() { return std::move(rows_); }

 private:
  // Everybody sleeps until the first rank has been let go.
  void wait_here() {
    if (options_.stop.empty()) return;
    const std::string file = options_.stop + "." + std::to_string(waits_++);
    if (rank_ == 0) {
      if (std::FILE* const made = std::fopen(file.c_str(), "w")) std::fclose(made);
      struct stat found = {};
      while (stat(file.c_str(), &found) == 0) kit::sleep_ns(2'000'000);
    }
    MPI_Request request;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0; kit::sleep_ns(2'000'000)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }

  const Options& options_;
  const int rank_, size_;
  kit::Json rows_ = kit::Json::array();
  int waits_ = 0;  // so far
};

class Work {
 public:
  Work(const Options& options, int rank, int size)
      : options_(options),
        rank_(rank),
        size_(size),
        ones_(std::size_t(options.elements), 1.0),
        sums_(std::size_t(options.elements)),
        sent_(std::size_t(options.block) * std::size_t(size)),
        received_(sent_.size()),
        message_(std::size_t(options.message)),
        from_left_(message_.size()) {
    for (int to = 0; to < size; ++to) std::memset(at(sent_, to), rank + to, std::size_t(options.block));
    std::memset(message_.data(), rank, message_.size());
  }

  std::vector<MPI_Comm> comms;
  bool good() const { return good_; }

  void duplicate() {
    for (int i = 0; i < options_.communicators; ++i) {
      comms.emplace_back();
      MPI_Comm_dup(MPI_COMM_WORLD, &comms.back());
    }
  }
  void split() {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank_ % 2, rank_, &half);
    MPI_Comm_free(&half);
  }
  // What is exchanged is new in each call, as what an earlier one has left must not look right.
  void reduce(MPI_Comm comm) {
    MPI_Request request;
    ones_.front() = ones_.back() = ++calls_;
    MPI_Iallreduce(ones_.data(), sums_.data(), options_.elements, MPI_DOUBLE, MPI_SUM, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    good_ = good_ && sums_.front() == size_ * calls_ && sums_.back() == size_ * calls_;
  }
  void exchange(MPI_Comm comm) {
    MPI_Request request;
    ++calls_;
    for (int to = 0; to < size_; ++to) *at(sent_, to) = char(rank_ + to + calls_);
    MPI_Ialltoall(sent_.data(), options_.block, MPI_BYTE, received_.data(), options_.block, MPI_BYTE, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int from = 0; from < size_; ++from) good_ = good_ && *at(received_, from) == char(from + rank_ + calls_);
  }
  void pass_on() {
    MPI_Request requests[2];
    const int left = (rank_ + size_ - 1) % size_, right = (rank_ + 1) % size_;
    ++calls_;
    message_.front() = message_.back() = char(rank_ + calls_);
    MPI_Irecv(from_left_.data(), options_.message, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(message_.data(), options_.message, MPI_BYTE, right, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    good_ = good_ && from_left_.front() == char(left + calls_) && from_left_.back() == char(left + calls_);
  }
  void use_window() {
    MPI_Win window;
    char* memory = nullptr;
    MPI_Win_allocate(options_.window, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_fence(0, window);
    std::int64_t mine = rank_ + ++calls_;
    MPI_Put(&mine, 1, MPI_INT64_T, (rank_ + 1) % size_, 0, 1, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    std::int64_t got = 0;
    std::memcpy(&got, memory, sizeof(got));
    good_ = good_ && got == (rank_ + size_ - 1) % size_ + calls_;
    MPI_Win_free(&window);
  }

 private:
  char* at(std::vector<char>& blocks, int rank) const {
    return blocks.data() + std::size_t(rank) * std::size_t(options_.block);
  }

  const Options& options_;
  const int rank_, size_;
  std::vector<double> ones_, sums_;
  std::vector<char> sent_, received_, message_, from_left_;
  int calls_ = 0;
  bool good_ = true;
};

template <class Do>
std::int64_t time_of(Do&& what) {
  const std::int64_t begin = kit::now_ns();
  what();
  return kit::now_ns() - begin;
}

int measure(const Options& options, std::int64_t init_ns) {
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Stages stages(options, rank, size);
  stages.note("init", init_ns);
  Work work(options, rank, size);
  const auto stage = [&](const char* name, const std::function<void()>& what) {
    MPI_Barrier(MPI_COMM_WORLD);
    const std::int64_t first = time_of(what);
    std::vector<std::int64_t> later;
    for (int i = 0; i < options.repeats; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      later.push_back(time_of(what));
    }
    stages.note(name, first, later);
  };
  MPI_Barrier(MPI_COMM_WORLD);
  stages.note("dup", time_of([&] { work.duplicate(); }) / options.communicators);
  stage("split", [&] { work.split(); });
  stage("reduce", [&] { work.reduce(work.comms[0]); });
  stage("exchange", [&] { work.exchange(work.comms[0]); });
  stage("all communicators", [&] {
    for (const MPI_Comm each : work.comms) work.exchange(each);
  });
  stage("message", [&] { work.pass_on(); });
  stage("window", [&] { work.use_window(); });
  for (MPI_Comm& each : work.comms) MPI_Comm_free(&each);
  const bool right = maximum(work.good() ? 0 : 1) == 0;
  kit::Json found = {{"ranks", size}, {"verified", right}, {"stages", stages.take()}};
  return options.end(right, rank == 0 ? kit::write_json(options.json, found) : std::string());
}

int run(int argc, char** argv) {
  const std::int64_t begin = kit::now_ns();
  MPI_Init(&argc, &argv);
  const std::int64_t init_ns = kit::now_ns() - begin;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int status = 0;
  {
    Options options;
    const auto ended = options.read(argc, argv, rank == 0);
    status = ended ? *ended : measure(options, init_ns);
  }
  MPI_Finalize();
  return status;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return bench::run(argc, argv); }
