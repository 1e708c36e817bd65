// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cstdio>

#include "../kit/report.hpp"

namespace bspmm {

double Outcome::efficiency() const { return total > 0 ? std::max(compute(), communication) / total : 0; }

std::string report(const Options& o, const Outcome& outcome) {
  std::printf(
      "bspmm: %d x %d tiles of %d x %d, %zu products in %zu units, %s, multiplied by %s, %d ranks, "
      "%d repeats\n",
      o.tiles, o.tiles, o.tile, o.tile, outcome.products_count, outcome.units_count, kVariants[int(o.variant)],
      o.who == Who::own ? "ranks" : "tasks", kit::ranks(), o.repeats);
  kit::Json times;
  std::printf("%-20s %12s %12s\n", "seconds of a run", "average", "max");
  for (int row = 0; row < kRows; ++row) {
    const auto& [average, least, most] = outcome.rows[row];
    std::printf("%-20s %12.4f %12.4f\n", kRowNames[row], average, most);
    times[kRowNames[row]] = {{"avg", average}, {"max", most}};
  }
  std::printf("%-20s %12.4f\n%-20s %12.4f\n%-20s %12.4f\n", "t_total", outcome.total, "t_compute", outcome.compute(),
              "t_communication", outcome.communication);
  std::printf("%-20s %12.4f\n", "rank's processor", outcome.rank_cpu);
  std::printf("longest wait: %.4f s\n", outcome.longest_wait);
  std::printf("efficiency: %.3f (max(t_compute, t_communication) / t_total)\n", outcome.efficiency());
  if (outcome.error)
    std::printf("verified: %s (largest error %.2g of what rounding allows)\n", outcome.good() ? "yes" : "no",
                *outcome.error);
  std::fflush(stdout);
  kit::Json verified, error;  // null: not checked
  if (outcome.error) verified = outcome.good(), error = *outcome.error;
  return kit::write_json(o.json, {{"library", kit::library()},
                                  {"tile", o.tile},
                                  {"tiles", o.tiles},
                                  {"variant", kVariants[int(o.variant)]},
                                  {"products_by", kWho[int(o.who)]},
                                  {"unit", o.unit},
                                  {"seed", o.seed},
                                  {"ranks", kit::ranks()},
                                  {"repeats", o.repeats},
                                  {"products_count", outcome.products_count},
                                  {"units_count", outcome.units_count},
                                  {"t_total_s", outcome.total},
                                  {"t_compute_s", outcome.compute()},
                                  {"t_communication_s", outcome.communication},
                                  {"efficiency", outcome.efficiency()},
                                  {"times_s", times},
                                  {"rank_cpu_s", outcome.rank_cpu},
                                  {"longest_wait_s", outcome.longest_wait},
                                  {"verified", verified},
                                  {"error", error}});
}

}  // namespace bspmm
