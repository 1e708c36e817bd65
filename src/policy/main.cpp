// SPDX-License-Identifier: BSD-3-Clause
// offpath-policy [TEXT...]: the table that the measured rows and the rows of each text make, in that order, as JSON on
// stdout:
//   {"rows": [{"text", "source", "collective", "from_bytes", "to_bytes" (null: no end), "nodes", "path",
//              "algorithm"}],                                   source: 0 measured, k the k-th text
//    "collectives": [{"name", "irregular", "algorithms"}]}
// or, exit status 2, {"source", "error"} for the first text that is not understood.
#include "policy/policy.hpp"

#include <cstdio>
#include <string>

namespace {

using namespace offpath::policy;

constexpr int kBadText = 2;

// As a JSON string. Bytes beyond ASCII stay what they are.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    char escape[8];
    if (static_cast<unsigned char>(c) < ' ') {
      snprintf(escape, sizeof(escape), "\\u%04x", c);
      result += escape;
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

std::string to_json(const Row& row, const std::string& text, int source) {
  const bool unlimited = row.to_bytes == kUnlimitedBytes;
  return "{\"text\": " + quoted(text) + ", \"source\": " + std::to_string(source) +
         ", \"collective\": " + quoted(collective_name(row.collective)) +
         ", \"from_bytes\": " + std::to_string(row.from_bytes) +
         ", \"to_bytes\": " + (unlimited ? "null" : std::to_string(row.to_bytes)) +
         ", \"nodes\": " + std::to_string(row.min_nodes) +
         ", \"path\": " + quoted(row.path == Path::dpu ? "dpu" : "host") +
         ", \"algorithm\": " + quoted(algorithm_name(row.algorithm)) + "}";
}

std::string to_json(Collective collective) {
  std::string algorithms;
  for (size_t i = 0; i < kAlgorithmsCount; ++i) {
    const auto algorithm = static_cast<offpath_algorithm_t>(i);
    if (knows(collective, algorithm)) algorithms += (i == 0 ? "" : ", ") + quoted(algorithm_name(algorithm));
  }
  return "{\"name\": " + quoted(collective_name(collective)) +
         ", \"irregular\": " + (is_irregular(collective) ? "true" : "false") + ", \"algorithms\": [" + algorithms +
         "]}";
}

// Appends the rows of `table` behind the first `known` ones.
void add_rows(const Table& table, size_t known, int source, std::string& rows) {
  const std::string printed = table.print();
  size_t line = 0;
  for (size_t i = 0; i < table.rows().size(); ++i) {
    const size_t end = printed.find('\n', line);
    if (i >= known) rows += (i == 0 ? "" : ",\n") + to_json(table.rows()[i], printed.substr(line, end - line), source);
    line = end + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Table table = Table::measured();
  std::string rows, collectives;
  add_rows(table, 0, 0, rows);
  for (int source = 1; source < argc; ++source) {
    const size_t known = table.rows().size();
    if (const auto status = table.apply(argv[source]); !status.ok()) {
      printf("{\"source\": %d, \"error\": %s}\n", source, quoted(status.text()).c_str());
      return kBadText;
    }
    add_rows(table, known, source, rows);
  }
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    collectives += (i == 0 ? "" : ",\n") + to_json(static_cast<Collective>(i));
  }
  printf("{\"rows\": [\n%s],\n\"collectives\": [\n%s]}\n", rows.c_str(), collectives.c_str());
  return 0;
}
