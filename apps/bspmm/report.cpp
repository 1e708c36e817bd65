// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "../report/json_file.hpp"
#include "job.hpp"

namespace bspmm {

double Outcome::efficiency() const { return total > 0 ? std::max(compute(), communication) / total : 0; }

void print_report(const Options& o, const Outcome& outcome) {
  std::printf("bspmm: %d x %d tiles of %d x %d, %zu products in %zu units, %s, %d ranks, %d repeats\n", o.tiles,
              o.tiles, o.tile, o.tile, outcome.products_count, outcome.units_count, name(o.variant), outcome.ranks,
              o.repeats);
  std::printf("%-20s %12s %12s\n", "seconds of a run", "average", "max");
  for (int row = 0; row < kRows; ++row)
    std::printf("%-20s %12.4f %12.4f\n", kRowNames[row], outcome.rows[row].avg, outcome.rows[row].max);
  std::printf("%-20s %12.4f\n", "t_total", outcome.total);
  std::printf("%-20s %12.4f\n", "t_compute", outcome.compute());
  std::printf("%-20s %12.4f\n", "t_communication", outcome.communication);
  std::printf("efficiency: %.3f (max(t_compute, t_communication) / t_total)\n", outcome.efficiency());
  if (outcome.error)
    std::printf("verified: %s (largest error %.2g of what rounding allows)\n", outcome.good() ? "yes" : "no",
                *outcome.error);
  std::fflush(stdout);
}

std::string write_json(const Options& o, const Outcome& outcome) {
  nlohmann::ordered_json json;
  json["library"] = job::library();
  json["tile"] = o.tile;
  json["tiles"] = o.tiles;
  json["variant"] = name(o.variant);
  json["unit"] = o.unit;
  json["seed"] = o.seed;
  json["ranks"] = outcome.ranks;
  json["repeats"] = o.repeats;
  json["products_count"] = outcome.products_count;
  json["units_count"] = outcome.units_count;
  json["t_total_s"] = outcome.total;
  json["t_compute_s"] = outcome.compute();
  json["t_communication_s"] = outcome.communication;
  json["efficiency"] = outcome.efficiency();
  for (int row = 0; row < kRows; ++row)
    json["times_s"][kRowNames[row]] = {{"avg", outcome.rows[row].avg}, {"max", outcome.rows[row].max}};
  json["verified"] = outcome.error ? nlohmann::ordered_json(outcome.good()) : nlohmann::ordered_json();
  json["error"] = outcome.error ? nlohmann::ordered_json(*outcome.error) : nlohmann::ordered_json();
  return report::write_json(o.json, json);
}

}  // namespace bspmm
