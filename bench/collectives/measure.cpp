// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "clocks.hpp"
#include "operation.hpp"

namespace bench {
namespace {

struct Cpu {
  std::int64_t host = 0, helper = 0, far = 0;  // far: of services on other machines; the helper is their agent then

  static Cpu now() { return {kit::process_cpu_ns(), service_cpu_ns(), far_services_cpu_ns()}; }
  void add(const Cpu& from, const Cpu& to) {
    host += to.host - from.host;
    helper += to.helper - from.helper;
    far += to.far - from.far;
  }
};

class Measurement {
 public:
  Measurement(const Options& options, std::size_t index)
      : options_(options),
        counts_service_(kit::first_of_node()),  // one helper serves all ranks of a node
        counts_far_(far_services() == FarServices::of_all_hosts ? kit::rank() == 0 : counts_service_),
        operation_(make_operation(options.name, options.sizes[index], options.field, MPI_COMM_WORLD)),
        requests_(std::size_t(operation_->requests())) {
    row_.bytes = options.sizes[index];
    row_.work_iterations = choose_work(index);
  }

  Row run() {
    std::vector<std::int64_t> pure_times, compute_times, total_times;
    Cpu cpu;
    for (int i = -options_.warmup; i < options_.repeats; ++i) {
      post();
      const std::int64_t pure = slowest([&] { communicate(0); });
      check();
      const std::int64_t compute = slowest([&] { work(row_.work_iterations); });
      post();
      kit::barrier();
      const Cpu before = Cpu::now();
      const std::int64_t total = slowest([&] { communicate(row_.work_iterations); },
                                         [&] {
                                           if (i >= 0) cpu.add(before, Cpu::now());
                                         });
      check();
      if (i < 0) continue;
      pure_times.push_back(pure);
      compute_times.push_back(compute);
      total_times.push_back(total);
    }
    row_.pure = kit::spread(pure_times);
    row_.compute = kit::spread(compute_times);
    row_.total = kit::spread(total_times);
    measure_work();
    const bool far = far_services() != FarServices::none;
    row_.host_cpu_ns = each_repeat(cpu.host);
    const std::int64_t helper_cpu_ns = each_repeat(counts_service_ ? cpu.helper : 0);
    (far ? row_.agent_cpu_ns : row_.service_cpu_ns) = helper_cpu_ns;
    if (far) row_.service_cpu_ns = each_repeat(counts_far_ ? cpu.far : 0);
    return row_;
  }

 private:
  // Not of what is timed: asking takes as long as little work.
  void measure_work() {
    constexpr int kTimes = 3;
    const std::int64_t before = kit::process_cpu_ns(), thread_before = kit::thread_cpu_ns(), begin = kit::now_ns();
    for (int i = 0; i < kTimes; ++i) work(row_.work_iterations);
    const auto took = double(std::max<std::int64_t>(1, kit::now_ns() - begin));
    const double share = std::min(1.0, double(kit::thread_cpu_ns() - thread_before) / took);
    row_.compute_cpu_ns = kit::sum((kit::process_cpu_ns() - before) / kTimes);
    row_.work_share = kit::minimum(share);
  }

  std::int64_t each_repeat(std::int64_t ns) { return kit::sum(ns) / options_.repeats; }

  // What is posted before all ranks have met. communicate() does the rest. Each time with content of its own: what an
  // earlier repeat has left is wrong.
  void post() {
    if (options_.verify) operation_->prepare(++round_);
    std::fill(requests_.begin(), requests_.end(), MPI_REQUEST_NULL);
    operation_->post(requests_.data());
  }

  void communicate(std::int64_t work_iterations) {
    const int tests = work_iterations > 0 ? options_.tests : 0;
    operation_->start(requests_.data());
    compute(work_iterations / 2, tests / 2);
    operation_->halfway(requests_.data());
    compute(work_iterations - work_iterations / 2, tests - tests / 2);
    MPI_Waitall(int(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

  // Work in one piece or, as a program that helps its MPI along would do it, in pieces with tests in between.
  void compute(std::int64_t iterations, int tests) {
    const int pieces = tests + 1;
    int done = 0;
    for (int piece = 0; piece < pieces; ++piece) {
      work(iterations * (piece + 1) / pieces - iterations * piece / pieces);
      if (piece + 1 < pieces && !done) MPI_Testall(int(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
    }
  }

  // The same on all ranks. after_clock runs before the ranks meet again.
  std::int64_t slowest(const std::function<void()>& timed, const std::function<void()>& after_clock = {}) {
    kit::barrier();
    const std::int64_t start = kit::now_ns();
    timed();
    const std::int64_t took = kit::now_ns() - start;
    if (after_clock) after_clock();
    return kit::maximum(took);
  }

  std::int64_t choose_work(std::size_t index) {
    if (!options_.work_iterations.empty()) return options_.work_iterations[index];
    std::int64_t ns = 0;
    if (!options_.work_ns.empty()) {
      ns = options_.work_ns[index];
    } else {
      std::vector<std::int64_t> times;
      for (int i = 0; i < 7; ++i) {
        post();
        const std::int64_t took = slowest([&] { communicate(0); });
        if (i >= 2) times.push_back(took);
      }
      ns = kit::spread(times).median;
    }
    return calibrate_together(ns);
  }

  // After each communication, beside the clock.
  void check() {
    if (!options_.verify) return;
    row_.verified = kit::minimum(std::int64_t(operation_->verify(round_))) && row_.verified;
  }

  const Options& options_;
  bool counts_service_, counts_far_;
  std::unique_ptr<Operation> operation_;
  std::vector<MPI_Request> requests_;
  int round_ = 0;
  Row row_;
};

}  // namespace

Row measure(const Options& options, std::size_t index) { return Measurement(options, index).run(); }

}  // namespace bench
