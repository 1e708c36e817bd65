// SPDX-License-Identifier: BSD-3-Clause
// What grows with the number of services: messages, virtual time and memory of the engines (docs/performance/scale.md). Rows as
// the performance pages have them, as JSON.
//   engine_scale SERVICES,...
#include "growth.hpp"
#include "../../apps/kit/json.hpp"
#include "many.hpp"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace {

using namespace offpath;
using engine_bench::Many;
using policy::Collective;

// The graphs of all services are there at once.
constexpr uint32_t kMostForBlocks = 512;

struct Asked {
  const char* name;
  Collective kind = Collective::ibarrier;
  uint64_t bytes = 0;  // of an alltoall: for each
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  graph::Ends ends = graph::Ends::alone;
  bool has_blocks = false;  // a step for each other one
};
constexpr Asked kAsked[] = {
    {"barrier"},
    {.name = "barrier, arrivals told", .ends = graph::Ends::together},
    {"allreduce of 8 B", Collective::iallreduce, 8},
    {"allreduce of 1 MiB, doubling", Collective::iallreduce, 1 << 20, OFFPATH_ALGORITHM_DOUBLING},
    {"allreduce of 1 MiB, rabenseifner", Collective::iallreduce, 1 << 20, OFFPATH_ALGORITHM_RABENSEIFNER},
    {"allreduce of 1 MiB, ring", Collective::iallreduce, 1 << 20, OFFPATH_ALGORITHM_RING, graph::Ends::alone, true},
    {.name = "alltoall of 8 B each", .kind = Collective::ialltoall, .bytes = 8, .has_blocks = true},
};
double seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

double rounded(double value) {  // to three digits
  if (value == 0 || value >= 1000) return std::round(value);
  const double unit = std::pow(10, std::floor(std::log10(std::abs(value))) - 2);
  return std::round(value / unit) * unit;
}

kit::Json shown(double value) {
  char text[32];
  snprintf(text, sizeof(text), "%.6g", rounded(value));
  return strtod(text, nullptr);
}

class Report {
 public:
  void add(const std::string& what, uint32_t services, const std::map<std::string, double>& values) {
    rows_.push_back({what, services, values});
  }
  // Those of the largest number of services say how what they show grows.
  kit::Json rows() const {
    kit::Json all = kit::Json::array();
    for (const Row& row : rows_) {
      kit::Json each;
      each["what"] = row.what;
      each["services"] = row.services;
      for (const auto& [name, value] : row.values) {
        each[name] = shown(value);
        const engine_bench::Points points = points_of(row.what, name);
        const bool says = points.size() > 2 && points.back().first == row.services && name != "seconds";
        const bool known =
            says && std::all_of(points.begin(), points.end(), [](const auto& point) { return point.second > 0; });
        each[name + "_grows"] = known ? kit::Json(engine_bench::form_of(points).name) : kit::Json();
        each[name + "_exponent"] = known ? shown(engine_bench::exponent(points)) : kit::Json();
        each[name + "_slope"] = known ? shown(engine_bench::form_of(points).slope) : kit::Json();
      }
      all.push_back(std::move(each));
    }
    return all;
  }

 private:
  struct Row {
    std::string what;
    uint32_t services;
    std::map<std::string, double> values;
  };
  engine_bench::Points points_of(const std::string& what, const std::string& name) const {
    engine_bench::Points points;
    for (const Row& row : rows_) {
      const auto value = row.values.find(name);
      if (row.what == what && value != row.values.end()) points.emplace_back(row.services, value->second);
    }
    return points;
  }
  std::vector<Row> rows_;
};

bool run(Many& many, const Asked& asked, uint32_t services, Report& report) {
  const double began = seconds();
  model::Operation operation;
  operation.kind = asked.kind;
  operation.algorithm = asked.algorithm;
  operation.bytes = asked.kind == Collective::ialltoall ? asked.bytes * services : asked.bytes;
  const auto spent = many.run(std::move(operation), asked.ends);
  if (!spent.ok()) return fprintf(stderr, "engine_scale: %s: %s\n", asked.name, spent.status().text()), false;
  report.add(asked.name, services,
             {{"messages", static_cast<double>(spent->messages) / services},
              {"most", static_cast<double>(spent->most_messages)},
              {"bytes", static_cast<double>(spent->bytes) / services},
              {"parts", static_cast<double>(spent->parts)},
              {"us", spent->ns / 1000},
              {"seconds", seconds() - began}});
  fprintf(stderr, "%u services, %s: %.1f s\n", services, asked.name, seconds() - began);
  return true;
}

bool run_all(uint32_t services, Report& report) {
  uint64_t before = Many::allocated_bytes();
  const auto note = [&](const char* what) {
    const uint64_t now = Many::allocated_bytes();
    const double each = (static_cast<double>(now) - static_cast<double>(before)) / services;
    report.add(what, services, {{"memory", each}});
    before = now;
  };
  Many many(services);
  note("an engine");
  if (!many.add_team().ok()) return false;
  note("a team");
  if (!run(many, {"a team's first barrier"}, services, report)) return false;
  note("a team's first operation, with connections");
  for (const Asked& asked : kAsked) {
    if (asked.has_blocks && services > kMostForBlocks) continue;
    if (!run(many, asked, services, report)) return false;
  }
  note("further operations");
  if (!many.add_team().ok()) return false;
  if (!run(many, {"the next team's first barrier"}, services, report)) return false;
  note("the next team, with its first operation");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report.add("the simulation", services, {{"peak_mib", static_cast<double>(usage.ru_maxrss) / 1024}});
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Report report;
  for (const char* at = argv[1]; *at != '\0';) {
    char* end = nullptr;
    const unsigned long services = strtoul(at, &end, 10);
    if (end == at || services < 2 || services > 1000000) return 2;
    if (!run_all(static_cast<uint32_t>(services), report)) return 1;
    at = *end == ',' ? end + 1 : end;
    if (*end != ',' && *end != '\0') return 2;
  }
  printf("%s\n", report.rows().dump(1).c_str());
  return 0;
}
