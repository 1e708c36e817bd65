// SPDX-License-Identifier: BSD-3-Clause
// A write of a file behind a fixed computation: the write alone, the computation alone, and both. The write is MPI's nonblocking one, or
// pwrite() by a thread of the program's own. Ranks beyond the writers sleep, so that there is a core with nothing to do.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <mpi.h>

#include "../../apps/kit/report.hpp"
#include "../collectives/times.hpp"

namespace bench {
namespace {

enum class Way { mpi, thread };
constexpr const char* kWays[] = {"mpi", "thread"};

struct Options : kit::Options {
  Options() : kit::Options("files", "A write of a file behind a fixed computation.") {}
  Numbers sizes = numbers(sizes, "--sizes", {16 << 20}, 1, INT32_MAX, "bytes that a rank writes");
  Numbers work_iterations =
      numbers(work_iterations, "--work-iterations", {}, 1, kit::kUnlimited,
              "the computation for each size, as an earlier run reported it; it lasts as long as the write otherwise");
  int writers = number(writers, "--writers", 1, 1, kit::kMany, "so many ranks write and compute, each its own part");
  int repeats = number(repeats, "--repeats", 10, 1, kit::kMany, "times that all is done");
  Way way = word(way, "--way", Way::mpi, kWays, "who writes");
  std::string file = text(file, "--file", "the file, which is removed afterwards");
  std::string json = text(json, "--json", "rank 0 writes the times to that file");
};

// One rank's part of the file.
class Part {
 public:
  Part(const Options& options, MPI_Comm writers) : way_(options.way) {
    MPI_Comm_rank(writers, &rank_);
    const std::string name = options.file.empty() ? "offpath-bench.dat" : options.file;
    MPI_File_open(writers, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file_);
    descriptor_ = open(name.c_str(), O_RDWR | O_CLOEXEC);
  }
  ~Part() {
    close(descriptor_);
    MPI_File_close(&file_);
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  void use(std::int64_t bytes) {
    data_.resize(std::size_t(bytes));
    at_ = rank_ * bytes;
  }
  void fill(int round) {
    for (std::size_t i = 0; i < data_.size(); i += 509) data_[i] = char(i / 509 + std::size_t(round));
  }
  void begin() {
    if (way_ == Way::mpi)
      MPI_File_iwrite_at(file_, at_, data_.data(), int(data_.size()), MPI_BYTE, &request_);
    else
      thread_ = std::thread([this] { write(); });
  }
  void end() {
    if (way_ == Way::mpi)
      MPI_Wait(&request_, MPI_STATUS_IGNORE);
    else
      thread_.join();
  }
  bool is_there() const {
    std::vector<char> there(data_.size());
    std::size_t done = 0;
    while (done < there.size()) {
      const ssize_t got = pread(descriptor_, there.data() + done, there.size() - done, at_ + off_t(done));
      if (got <= 0) return false;
      done += std::size_t(got);
    }
    return there == data_;
  }

 private:
  void write() const {
    for (std::size_t done = 0; done < data_.size();) {
      const ssize_t moved = pwrite(descriptor_, data_.data() + done, data_.size() - done, at_ + off_t(done));
      if (moved <= 0) return;  // is_there() finds out
      done += std::size_t(moved);
    }
  }

  const Way way_;
  int rank_ = 0;
  MPI_File file_ = MPI_FILE_NULL;
  int descriptor_ = -1;
  off_t at_ = 0;
  std::vector<char> data_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  std::thread thread_;
};

template <class Do>
std::int64_t time_of(MPI_Comm writers, Do&& what) {
  MPI_Barrier(writers);
  const std::int64_t begin = kit::now_ns();
  what();
  std::int64_t mine = kit::now_ns() - begin, longest = 0;
  MPI_Allreduce(&mine, &longest, 1, MPI_INT64_T, MPI_MAX, writers);
  return longest;
}

struct Row {
  std::int64_t bytes, work_iterations;
  Times times;
  bool verified;

  kit::Json json() const {
    kit::Json json = {{"bytes", bytes}, {"work_iterations", work_iterations}};
    times.write(json);
    json["verified"] = verified;
    return json;
  }
};

Row measure(Part& part, const Options& options, std::size_t which, MPI_Comm writers) {
  const std::int64_t bytes = options.sizes[which];
  part.use(bytes);
  const auto write = [&] { part.begin(), part.end(); };
  part.fill(0);
  write();  // the file has its length from here on
  std::vector<std::int64_t> pure, compute, total;
  bool good = true;
  int round = 0;  // each has bytes of its own
  for (int i = 0; i < options.repeats; ++i) {
    part.fill(++round);
    pure.push_back(time_of(writers, write));
    good = part.is_there() && good;
  }
  std::int64_t iterations = which < options.work_iterations.size() ? options.work_iterations[which] : 0;
  if (iterations == 0) iterations = calibrate_work(kit::spread(pure).median);
  MPI_Bcast(&iterations, 1, MPI_INT64_T, 0, writers);
  for (int i = 0; i < options.repeats; ++i) {
    compute.push_back(time_of(writers, [&] { work(iterations); }));
    part.fill(++round);
    total.push_back(time_of(writers, [&] {
      part.begin();
      work(iterations);
      part.end();
    }));
    good = part.is_there() && good;
  }
  int mine = good ? 1 : 0, all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, writers);
  return {bytes, iterations, {kit::spread(pure), kit::spread(compute), kit::spread(total)}, all == 1};
}

// Of those that have nothing to do. A barrier that waits by looking would take the core.
void sleep_until_others_are_done() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0; usleep(2000)) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

int run(const Options& options) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const bool writes = rank < options.writers;
  MPI_Comm writers;
  MPI_Comm_split(MPI_COMM_WORLD, writes ? 0 : MPI_UNDEFINED, rank, &writers);
  std::vector<Row> rows;
  if (writes) {
    Part part(options, writers);
    for (std::size_t i = 0; i < options.sizes.size(); ++i) rows.push_back(measure(part, options, i, writers));
  }
  if (writes) MPI_Comm_free(&writers);
  sleep_until_others_are_done();
  const bool good = std::all_of(rows.begin(), rows.end(), [](const Row& row) { return row.verified; });
  if (!options.speaks()) return options.end(good);
  auto json = kit::Json::array();
  for (const Row& row : rows) {
    std::printf("%lld bytes: efficiency %.3f\n", static_cast<long long>(row.bytes), row.times.efficiency());
    json.push_back(row.json());
  }
  return options.end(good, kit::write_json(options.json, {{"ranks", kit::ranks()}, {"rows", json}}));
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, bench::run); }
