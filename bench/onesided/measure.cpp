// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <algorithm>
#include <vector>

#include "../collectives/clocks.hpp"

namespace bench {
namespace {

// Over this rank's repeats, then that of the slowest rank.
kit::Spread<std::int64_t> slowest(const std::vector<std::int64_t>& times) {
  const auto own = kit::spread(times);
  return {kit::maximum(own.median), kit::maximum(own.min), kit::maximum(own.max)};
}

template <class Call>
std::int64_t timed(Call call) {
  const std::int64_t start = kit::now_ns();
  call();
  return kit::now_ns() - start;
}

class Measurement {
 public:
  Measurement(const Options& options, std::size_t index, std::int64_t piece_iterations)
      : options_(options),
        index_(index),
        piece_iterations_(piece_iterations),
        counts_service_(kit::first_of_node()),
        bytes_(options.sizes[index / options.targets.size()]),
        messages_(options.operation == Kind::put_rate ? options.messages : 1),
        target_(options.targets[index % options.targets.size()]),
        operation_(options.operation, bytes_, messages_) {}

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
      const bool right = operation_.verify(int(kit::maximum(std::int64_t(round_))), kit::maximum(communications_));
      good_ = kit::minimum(std::int64_t(good_ && right)) != 0;
    }
    kit::barrier();
    return {{slowest(pure_), slowest(compute_), slowest(total_)},
            bytes_,
            messages_,
            target_,
            kit::maximum(work_iterations_),
            kit::maximum(kit::spread(pieces_).median),
            kit::sum(host_cpu_ns_) / options_.repeats,
            kit::sum(service_cpu) / repeats,
            good_};
  }

 private:
  static constexpr std::int64_t kMostForCpu = 10;

  template <class Call>
  void by_role(Call origins) {
    kit::barrier();
    if (operation_.is_origin()) {
      origins();
      if (target_ == Target::computing) operation_.tell_target();
    } else if (target_ == Target::computing) {
      serve();
    }
    kit::barrier();
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
    const std::int64_t cpu_before = kit::process_cpu_ns();
    const std::int64_t took = timed([&] { communicate(work_iterations); });
    last_cpu_ns_ = kit::process_cpu_ns() - cpu_before;
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
    return calibrate_work(kit::spread(times).median);
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

Row measure(const Options& options, std::size_t index, std::int64_t piece_iterations) {
  return Measurement(options, index, piece_iterations).run();
}

std::int64_t choose_piece(const Options& options) {
  if (options.piece_iterations > 0) return options.piece_iterations;
  return calibrate_together(options.piece_ns);
}

}  // namespace bench
