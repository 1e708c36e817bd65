// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations towards targets that wait and targets that compute: t_pure, t_compute, t_total.
#include <cstdio>

#include "../../apps/kit/report.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "rma.hpp"

namespace bench {
namespace {

kit::Json to_json(const Row& row, const Options& options) {
  kit::Json json = {{"bytes", row.bytes},
                    {"messages", row.messages},
                    {"target", kTargets[int(row.target)]},
                    {"interface", rma::interface()},
                    {"ranks", kit::ranks()}};
  row.write(json);
  json["work_iterations"] = row.work_iterations;
  json["target_piece_ns"] = row.target_piece_ns;
  json["host_cpu_ns"] = row.host_cpu_ns;
  json["service_cpu_ns"] = row.service_cpu_ns;
  json["repeats"] = options.repeats;
  json["verified"] = options.verify ? kit::Json(row.verified) : kit::Json();
  return json;
}

void print_header(const Options& options) {
  std::printf("%s (%s), %d ranks, %d repeats, median of the slowest origin in us\n", kKinds[int(options.operation)],
              rma::interface(), kit::ranks(), options.repeats);
  std::printf("%12s %10s %12s %12s %12s %11s %12s %12s %12s\n", "bytes", "target", "t_pure", "t_compute", "t_total",
              "efficiency", "piece", "host cpu", "service cpu");
}

void print_row(const Row& row) {
  std::printf("%12lld %10s %12.1f %12.1f %12.1f %11.3f %12.1f %12.1f %12.1f\n", (long long)row.bytes,
              kTargets[int(row.target)], row.pure.median / 1e3, row.compute.median / 1e3, row.total.median / 1e3,
              row.efficiency(), row.target_piece_ns / 1e3, row.host_cpu_ns / 1e3, row.service_cpu_ns / 1e3);
  std::fflush(stdout);
}

int run(const Options& options) {
  const std::int64_t piece_iterations = choose_piece(options);
  kit::Json json = {{"library", kit::library()},
                    {"operation", kKinds[int(options.operation)]},
                    {"piece_iterations", piece_iterations},
                    {"rows", kit::Json::array()}};
  if (options.speaks()) print_header(options);
  bool good = true;
  for (std::size_t i = 0; i < options.row_count(); ++i) {
    const Row row = measure(options, i, piece_iterations);
    good = good && row.verified;
    if (!options.speaks()) continue;
    print_row(row);
    if (!row.verified) options.complain(wrong_at(row.bytes));
    json["rows"].push_back(to_json(row, options));
  }
  return options.end(good, options.speaks() ? kit::write_json(options.json, json) : "");
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) { return kit::run_ranks(argc, argv, bench::run); }
