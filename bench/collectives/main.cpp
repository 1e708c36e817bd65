// SPDX-License-Identifier: BSD-3-Clause
// How much of a nonblocking operation hides behind computation: t_pure, t_compute, t_total for a list of sizes.
#include <cstdio>
#include <cstring>
#include <string>

#include <mpi.h>
#include <nlohmann/json.hpp>

#include "../../apps/arguments/speaker.hpp"
#include "../../apps/report/json_file.hpp"
#include "measure.hpp"
#include "operation.hpp"
#include "options.hpp"

namespace bench {
namespace {

nlohmann::ordered_json to_json(const Row& row, int ranks, const Options& options) {
  nlohmann::ordered_json json = {{"bytes", row.bytes}, {"ranks", ranks}};
  const std::pair<const char*, const Spread&> times[] = {
      {"t_pure", row.pure}, {"t_compute", row.compute}, {"t_total", row.total}};
  for (const auto& [name, spread] : times) {
    json[name + std::string("_ns")] = spread.median;
    json[name + std::string("_min_ns")] = spread.min;
    json[name + std::string("_max_ns")] = spread.max;
  }
  json["efficiency"] = row.efficiency();
  json["work_iterations"] = row.work_iterations;
  json["host_cpu_ns"] = row.host_cpu_ns;
  json["compute_cpu_ns"] = row.compute_cpu_ns;
  json["work_share"] = row.work_share;
  json["agent_cpu_ns"] = row.agent_cpu_ns;
  json["service_cpu_ns"] = row.service_cpu_ns;
  json["repeats"] = options.repeats;
  json["verified"] = options.verify ? nlohmann::ordered_json(row.verified) : nlohmann::ordered_json();
  return json;
}

void print_header(const Options& options, int ranks) {
  std::printf("%s, %d ranks, %d repeats, median of the slowest rank in us\n", options.name.c_str(), ranks,
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

std::string library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, std::strcspn(text, "\n"));
}

int run(int argc, char** argv, MPI_Comm communicator) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(communicator, &rank);
  MPI_Comm_size(communicator, &ranks);
  Options options;
  const Words program = words();
  const arguments::Speaker speaker(program.program, rank == 0);
  std::string problem = parse_options(argc, argv, options);
  if (problem.empty() && options.help.empty()) problem = refused(ranks);
  if (const auto status = speaker.end(problem, options.help)) return *status;

  nlohmann::ordered_json json = {{"mpi", library_version()},
                                 {program.noun, options.name},
                                 {"tests", options.tests},
                                 {"rows", nlohmann::ordered_json::array()}};
  if (rank == 0) print_header(options, ranks);
  bool good = true;
  for (std::size_t i = 0; i < options.sizes.size(); ++i) {
    const Row row = measure(options, i, communicator);
    good = good && row.verified;
    if (rank != 0) continue;
    print_row(row);
    if (!row.verified)
      std::fprintf(stderr, "%s: wrong result at size %lld (times mean nothing then). Report this\n", program.program,
                   (long long)row.bytes);
    json["rows"].push_back(to_json(row, ranks, options));
  }
  if (rank == 0 && !options.json.empty()) {
    problem = report::write_json(options.json, json);
    if (!problem.empty()) return speaker.complain(problem);
  }
  return good ? 0 : arguments::kFailed;
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int status = bench::run(argc, argv, MPI_COMM_WORLD);
  MPI_Finalize();
  return status;
}
