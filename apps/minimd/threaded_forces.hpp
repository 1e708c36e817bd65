// SPDX-License-Identifier: BSD-3-Clause
// Forces by several threads (of OpenMP). Both atoms of a pair get a force, so each thread has a field of its own, and the
// fields are added up: the same result whenever the number of threads is the same. f is zero from `begin` on before.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "force.hpp"

namespace minimd {

struct Effort {
  int threads = 1;
  int repeats = 1;  // a slower processor is emulated by doing all of it so often
};

class ThreadedForces {
 public:
  Sums add(const double* x, double* f, int all, ListView list, int begin, int end, double cutoff, bool with_sums,
           Effort effort) {
    for (int again = 1; again < effort.repeats; ++again) {
      once(x, f, all, list, begin, end, cutoff, with_sums, effort.threads);
      std::fill(f + 3 * std::size_t(begin), f + 3 * std::size_t(all), 0.0);
    }
    return once(x, f, all, list, begin, end, cutoff, with_sums, effort.threads);
  }

 private:
  Sums once(const double* x, double* f, int all, ListView list, int begin, int end, double cutoff, bool with_sums,
            int threads) {
    if (threads == 1) return add_forces(x, f, list, begin, end, cutoff, with_sums);
    const std::size_t size = 3 * std::size_t(all), from = 3 * std::size_t(begin);
    fields_.resize(std::size_t(threads));
    sums_.assign(std::size_t(threads), {});
    const auto part = [threads](std::size_t first, std::size_t last, int index) {
      return first + (last - first) * std::size_t(index) / std::size_t(threads);
    };
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
      fields_[t].assign(size, 0.0);
      sums_[t] = add_forces(x, fields_[t].data(), list, int(part(begin, end, t)), int(part(begin, end, t + 1)), cutoff,
                            with_sums);
    }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t)
      for (const std::vector<double>& field : fields_)
        for (std::size_t i = part(from, size, t); i < part(from, size, t + 1); ++i) f[i] += field[i];
    Sums all_sums;
    for (const Sums& each : sums_) all_sums.energy += each.energy, all_sums.virial += each.virial;
    return all_sums;
  }

  std::vector<std::vector<double>> fields_;
  std::vector<Sums> sums_;
};

}  // namespace minimd
