// SPDX-License-Identifier: BSD-3-Clause
// How much of a nonblocking operation hides behind computation: t_pure, t_compute, t_total for a list of sizes.
#include <cstdio>

#include "../../apps/kit/report.hpp"
#include "measure.hpp"

namespace bench {
namespace {

kit::Json to_json(const Row& row, const Options& options) {
  kit::Json json = {{"bytes", row.bytes}, {"ranks", kit::ranks()}};
  row.write(json);
  json["work_iterations"] = row.work_iterations;
  json["host_cpu_ns"] = row.host_cpu_ns;
  json["compute_cpu_ns"] = row.compute_cpu_ns;
  json["work_share"] = row.work_share;
  json["agent_cpu_ns"] = row.agent_cpu_ns;
  json["service_cpu_ns"] = row.service_cpu_ns;
  json["repeats"] = options.repeats;
  json["verified"] = options.verify ? kit::Json(row.verified) : kit::Json();
  return json;
}

void print_header(const Options& options) {
  std::printf("%s, %d ranks, %d repeats, median of the slowest rank in us\n", options.name.c_str(), kit::ranks(),
              options.repeats);
  std::printf("%12s %12s %12s %12s %11s %12s %12s\n", "bytes", "t_pure", "t_compute", "t_total", "efficiency",
              "host cpu", "service cpu");
}

void print_row(const Row& row) {
  std::printf("%12lld %12.1f %12.1f %12.1f %11.3f %12.1f %12.1f\n", (long long)row.bytes, row.pure.median / 1e3,
              row.compute.median / 1e3, row.total.median / 1e3, row.efficiency(), row.host_cpu_ns / 1e3,
              row.service_cpu_ns / 1e3);
  std::fflush(stdout);
}

int run(const Options& options) {
  kit::Json json = {{"mpi", kit::library()},
                    {words().option + 2, options.name},
                    {"tests", options.tests},
                    {"rows", kit::Json::array()}};
  if (options.speaks()) print_header(options);
  bool good = true;
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    const Row row = measure(options, i);
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
