// SPDX-License-Identifier: BSD-3-Clause
// One-sided operations towards targets that wait and targets that compute: t_pure, t_compute, t_total.
#include <cstdio>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>

#include "../../apps/arguments/speaker.hpp"
#include "../../apps/report/json_file.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "rma.hpp"

namespace bench {
namespace {

nlohmann::ordered_json to_json(const Row& row, const Options& options) {
  nlohmann::ordered_json json = {{"bytes", row.bytes},
                                 {"messages", row.messages},
                                 {"target", name(row.target)},
                                 {"interface", rma::interface()},
                                 {"ranks", rma::ranks()}};
  const std::pair<const char*, const Spread&> times[] = {
      {"t_pure", row.pure}, {"t_compute", row.compute}, {"t_total", row.total}};
  for (const auto& [time, spread] : times) {
    json[time + std::string("_ns")] = spread.median;
    json[time + std::string("_min_ns")] = spread.min;
    json[time + std::string("_max_ns")] = spread.max;
  }
  json["efficiency"] = row.efficiency();
  json["work_iterations"] = row.work_iterations;
  json["target_piece_ns"] = row.target_piece_ns;
  json["host_cpu_ns"] = row.host_cpu_ns;
  json["service_cpu_ns"] = row.service_cpu_ns;
  json["repeats"] = options.repeats;
  json["verified"] = options.verify ? nlohmann::ordered_json(row.verified) : nlohmann::ordered_json();
  return json;
}

void print_header(const Options& options) {
  std::printf("%s (%s), %d ranks, %d repeats, median of the slowest origin in us\n", options.operation.c_str(),
              rma::interface(), rma::ranks(), options.repeats);
  std::printf("%12s %10s %12s %12s %12s %11s %12s %12s %12s\n", "bytes", "target", "t_pure", "t_compute", "t_total",
              "efficiency", "piece", "host cpu", "service cpu");
}

void print_row(const Row& row) {
  std::printf("%12lld %10s %12.1f %12.1f %12.1f %11.3f %12.1f %12.1f %12.1f\n", (long long)row.bytes, name(row.target),
              row.pure.median / 1e3, row.compute.median / 1e3, row.total.median / 1e3, row.efficiency(),
              row.target_piece_ns / 1e3, row.host_cpu_ns / 1e3, row.service_cpu_ns / 1e3);
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  const bool speaks = rma::rank() == 0;
  const arguments::Speaker speaker("onesided", speaks);
  Options options;
  std::string problem = parse_options(argc, argv, options);
  if (problem.empty() && options.help.empty() && rma::ranks() % 2 != 0)
    problem =
        std::to_string(rma::ranks()) + " ranks are not usable (every origin needs a target). Start an even number";
  if (const auto status = speaker.end(problem, options.help)) return *status;

  const std::int64_t piece_iterations = choose_piece(options);
  nlohmann::ordered_json json = {{"library", rma::library()},
                                 {"operation", options.operation},
                                 {"piece_iterations", piece_iterations},
                                 {"rows", nlohmann::ordered_json::array()}};
  if (speaks) print_header(options);
  bool good = true;
  for (std::size_t i = 0; i < options.row_count(); ++i) {
    const Row row = measure(options, i, piece_iterations);
    good = good && row.verified;
    if (!speaks) continue;
    print_row(row);
    if (!row.verified)
      std::fprintf(stderr, "onesided: wrong result at size %lld (times mean nothing then). Report this\n",
                   (long long)row.bytes);
    json["rows"].push_back(to_json(row, options));
  }
  if (speaks && !options.json.empty()) {
    problem = report::write_json(options.json, json);
    if (!problem.empty()) return speaker.complain(problem);
  }
  return good ? 0 : arguments::kFailed;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  bench::rma::start(&argc, &argv);
  const int status = bench::run(argc, argv);
  bench::rma::stop();
  return status;
}
