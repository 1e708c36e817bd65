// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <iterator>

namespace offpath::policy {
namespace {

constexpr uint64_t kKiB = 1024;

constexpr uint64_t kNever = kUnlimitedBytes;
constexpr double kMeasuredRate = 0.125;   // bytes per ns: where the rows come from
constexpr double kMostSharedRate = 0.45;  // from there on nothing gains (docs/performance/policy.md)

struct Measured {
  Collective collective;
  uint64_t from_bytes;
};
// Inside one node a transfer is a memory copy.
constexpr Measured kMeasured[] = {
#define OFFPATH_POLICY_ROW(name, kind, size, from, blocking, shown) {Collective::name, from},
#include <offpath/words/policy_rows.def>
};

std::string format_size(uint64_t bytes) {
  if (bytes == kUnlimitedBytes) return "inf";
  constexpr const char* kUnits[] = {"", "K", "M", "G"};
  size_t unit = 0;
  while (bytes != 0 && bytes % kKiB == 0 && unit + 1 < std::size(kUnits)) {
    bytes /= kKiB;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

}  // namespace

Table Table::measured(const Network& network) {
  Table table;
  uint64_t later = 1;
  while (network.bytes_per_ns >= 2 * static_cast<double>(later) * kMeasuredRate) later *= 2;
  const bool waits_cost = network.shares_cores && network.crowded;
  const bool gains = !network.shares_cores || network.bytes_per_ns < kMostSharedRate;
  for (const auto& [collective, from_bytes] : kMeasured) {
    if (from_bytes == kNever || (!gains && has_size(collective))) continue;
    if (waits_cost && collective == Collective::send) continue;
    table.append({collective, Path::dpu, 2, from_bytes * later, kUnlimitedBytes});
  }
  return table;
}

Choice Table::choose(Collective collective, uint64_t bytes, uint32_t nodes) const {
  const std::vector<Row>& rows = by_collective_[static_cast<size_t>(collective)];
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (nodes < row->min_nodes || bytes < row->from_bytes) continue;
    if (row->to_bytes != kUnlimitedBytes && bytes >= row->to_bytes) continue;
    return {row->path, row->algorithm, row->origin};
  }
  return {};
}

template <typename Wanted>
bool Table::answers(Collective collective, uint32_t nodes, Wanted wanted) const {
  // A later host row may hide a dpu row; asking at the ends of every row is exact, as answers change only there.
  for (const Row& row : by_collective_[static_cast<size_t>(collective)]) {
    if (wanted(choose(collective, row.from_bytes, nodes))) return true;
    if (row.to_bytes != kUnlimitedBytes && wanted(choose(collective, row.to_bytes, nodes))) return true;
  }
  return false;
}

bool Table::offloads(Collective collective, uint32_t nodes) const {
  return answers(collective, nodes, [](const Choice& choice) { return choice.path == Path::dpu; });
}

bool Table::offloads(uint32_t nodes) const {
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    if (offloads(static_cast<Collective>(i), nodes)) return true;
  }
  return false;
}

bool Table::is_measured(uint32_t nodes) const {
  const auto measured = [](const Choice& choice) {
    return choice.path == Path::dpu && choice.origin == Origin::measured;
  };
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (has_size(collective) && answers(collective, nodes, measured)) return true;
  }
  return false;
}

void Table::append(const Row& row) {
  rows_.push_back(row);
  by_collective_[static_cast<size_t>(row.collective)].push_back(row);
}

std::string range_text(const Row& row) {
  std::string text = collective_name(row.collective);
  if (has_size(row.collective)) text += ":" + format_size(row.from_bytes) + "-" + format_size(row.to_bytes);
  if (row.min_nodes > 1) text += ":nodes=" + std::to_string(row.min_nodes);
  return text;
}

std::string Table::print() const {
  std::string text;
  for (const Row& row : rows_) {
    text += range_text(row);
    text += row.path == Path::dpu ? ":dpu" : ":host";
    if (row.algorithm != OFFPATH_ALGORITHM_DEFAULT) text += std::string("=") + algorithm_name(row.algorithm);
    text += '\n';
  }
  return text;
}

}  // namespace offpath::policy
