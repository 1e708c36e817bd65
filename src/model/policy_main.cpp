// SPDX-License-Identifier: BSD-3-Clause
// offpath-policy [TEXT...]: the table that the measured rows and the rows of each text make, in that order, as JSON on
// stdout:
//   {"rows": [{"text", "source", "collective", "from_bytes", "to_bytes" (null: no end), "nodes", "path",
//              "algorithm"}],                                   source: 0 measured, k the k-th text
//    "collectives": [{"name", "irregular", "algorithms", "defaults": [{"from_bytes", "algorithm"}]}]}
// or, exit status 2, {"source", "error"} for the first text that is not understood.
#include "model/operation.hpp"
#include "policy/policy.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <string>

namespace {

using namespace offpath::policy;
using nlohmann::ordered_json;

constexpr int kBadText = 2;

// What is no UTF-8 in a text is replaced.
void print(const ordered_json& json) { puts(json.dump(1, ' ', false, ordered_json::error_handler_t::replace).c_str()); }

ordered_json to_json(const Row& row, const std::string& text, int source) {
  const bool unlimited = row.to_bytes == kUnlimitedBytes;
  return {{"text", text},
          {"source", source},
          {"collective", collective_name(row.collective)},
          {"from_bytes", row.from_bytes},
          {"to_bytes", unlimited ? ordered_json() : ordered_json(row.to_bytes)},
          {"nodes", row.min_nodes},
          {"path", row.path == Path::dpu ? "dpu" : "host"},
          {"algorithm", algorithm_name(row.algorithm)}};
}

ordered_json to_json(Collective collective) {
  ordered_json algorithms = ordered_json::array();
  for (const auto& [algorithm, name] : offpath::base::Words<offpath_algorithm_t>::rows) {
    if (knows(collective, algorithm)) algorithms.push_back(name);
  }
  ordered_json defaults = ordered_json::array();
  if (is_collective(collective)) {
    for (const auto& [from_bytes, algorithm] : offpath::ops::default_algorithms(kind_of(collective))) {
      defaults.push_back({{"from_bytes", from_bytes}, {"algorithm", algorithm_name(algorithm)}});
    }
  }
  return {{"name", collective_name(collective)},
          {"irregular", is_irregular(collective)},
          {"algorithms", algorithms},
          {"defaults", defaults}};
}

// Appends the rows of `table` behind the first `known` ones.
void add_rows(const Table& table, size_t known, int source, ordered_json& rows) {
  const std::string printed = table.print();
  size_t line = 0;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    const size_t end = printed.find('\n', line);
    if (i >= known) rows.push_back(to_json(table.rows()[i], printed.substr(line, end - line), source));
    line = end + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Table table = Table::measured();
  ordered_json rows = ordered_json::array(), collectives = ordered_json::array();
  add_rows(table, 0, 0, rows);
  for (int source = 1; source < argc; ++source) {
    const size_t known = table.rows().size();
    if (const auto status = table.apply(argv[source]); !status.ok()) {
      print({{"source", source}, {"error", status.text()}});
      return kBadText;
    }
    add_rows(table, known, source, rows);
  }
  for (size_t i = 0; i < kCollectivesCount; ++i) collectives.push_back(to_json(static_cast<Collective>(i)));
  print({{"rows", rows}, {"collectives", collectives}});
  return 0;
}
