// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <algorithm>
#include <vector>

#include "../collectives/clocks.hpp"
#include "../collectives/work.hpp"
#include "operation.hpp"
#include "rma.hpp"

namespace bench {
namespace {

std::int64_t median(std::vector<std::int64_t> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Over this rank's repeats, then that of the slowest rank.
Spread slowest(const std::vector<std::int64_t>& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  const bool any = !times.empty();
  return {rma::maximum(median(times)), rma::maximum(any ? *least : 0), rma::maximum(any ? *most : 0)};
}

template <class Call>
std::int64_t timed(Call call) {
  const std::int64_t start = now_ns();
  call();
  return now_ns() - start;
}

const NamedOperation& operation_of(const Options& options) {
  return *std::find_if(operations().begin(), operations().end(),
                       [&](const auto& each) { return options.operation == each.name; });
}

class Measurement {
 public:
  Measurement(const Options& options, std::size_t index, std::int64_t piece_iterations)
      : options_(options),
        index_(index),
        piece_iterations_(piece_iterations),
        counts_service_(rma::first_of_node()),
        bytes_(options.sizes[index / options.targets.size()]),
        messages_(operation_of(options).is_rate ? options.messages : 1),
        target_(options.targets[index % options.targets.size()]),
        operation_(operation_of(options).kind, bytes_, messages_) {}

  Row run() {
    by_role([this] { originate(); });
    // Of communications alone, without those that check them.
    const std::int64_t repeats = std::min<std::int64_t>(options_.repeats, kMostForCpu);
    const std::int64_t service_before = service_cpu_ns();
    by_role([&] {
      for (std::int64_t i = 0; i < repeats; ++i) communicate(work_iterations_);
    });
    const std::int64_t service_cpu = counts_service_ ? service_cpu_ns() - service_before : 0;
    if (options_.verify) {
      const bool right = operation_.verify(int(rma::maximum(round_)), rma::maximum(communications_));
      good_ = rma::sum(good_ && right ? 0 : 1) == 0;
    }
    rma::barrier();
    return {bytes_,
            messages_,
            target_,
            rma::maximum(work_iterations_),
            slowest(pure_),
            slowest(compute_),
            slowest(total_),
            rma::maximum(median(pieces_)),
            rma::sum(host_cpu_ns_) / options_.repeats,
            rma::sum(service_cpu) / repeats,
            good_};
  }

 private:
  static constexpr std::int64_t kMostForCpu = 10;

  template <class Call>
  void by_role(Call origins) {
    rma::barrier();
    if (operation_.is_origin()) {
      origins();
      if (target_ == Target::computing) operation_.tell_target();
    } else if (target_ == Target::computing) {
      serve();
    }
    rma::barrier();
  }

  void communicate(std::int64_t work_iterations) {
    operation_.start();
    if (work_iterations > 0) work(work_iterations);
    operation_.finish();
    ++communications_;
  }

  // Each has content of its own: what an earlier one has left is wrong.
  std::int64_t timed_and_checked(std::int64_t work_iterations) {
    if (options_.verify) operation_.renew(++round_);
    const std::int64_t cpu_before = process_cpu_ns();
    const std::int64_t took = timed([&] { communicate(work_iterations); });
    last_cpu_ns_ = process_cpu_ns() - cpu_before;
    if (options_.verify) good_ = operation_.is_right(round_) && good_;
    return took;
  }

  void originate() {
    work_iterations_ = choose_work();
    for (int i = -options_.warmup; i < options_.repeats; ++i) {
      const std::int64_t pure = timed_and_checked(0);
      const std::int64_t compute = timed([&] { work(work_iterations_); });
      const std::int64_t total = timed_and_checked(work_iterations_);
      if (i < 0) continue;
      host_cpu_ns_ += last_cpu_ns_;
      pure_.push_back(pure);
      compute_.push_back(compute);
      total_.push_back(total);
    }
  }

  // As a program that computes would do it: the library hears of this rank between two pieces of work only.
  void serve() {
    do {
      pieces_.push_back(timed([&] { work(piece_iterations_); }));
      rma::progress();
    } while (!operation_.was_told());
  }

  std::int64_t choose_work() {
    if (!options_.work_iterations.empty()) return options_.work_iterations[index_];
    std::vector<std::int64_t> times;
    for (int i = 0; i < 7; ++i) {
      const std::int64_t took = timed_and_checked(0);
      if (i >= 2) times.push_back(took);
    }
    return calibrate_work(median(times));
  }

  const Options& options_;
  std::size_t index_;
  std::int64_t piece_iterations_;
  bool counts_service_;
  std::int64_t bytes_;
  int messages_;
  Target target_;
  Operation operation_;
  std::int64_t work_iterations_ = 0, communications_ = 0, host_cpu_ns_ = 0, last_cpu_ns_ = 0;
  int round_ = 0;
  std::vector<std::int64_t> pure_, compute_, total_, pieces_;
  bool good_ = true;
};

}  // namespace

double Row::efficiency() const {
  return total.median > 0 ? double(std::max(pure.median, compute.median)) / double(total.median) : 0;
}

Row measure(const Options& options, std::size_t index, std::int64_t piece_iterations) {
  return Measurement(options, index, piece_iterations).run();
}

std::int64_t choose_piece(const Options& options) {
  if (options.piece_iterations > 0) return options.piece_iterations;
  rma::barrier();
  return std::max<std::int64_t>(1, rma::sum(calibrate_work(options.piece_ns)) / rma::ranks());
}

}  // namespace bench
