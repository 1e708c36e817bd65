// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <iterator>

namespace offpath::policy {
namespace {

constexpr uint64_t kKiB = 1024;

constexpr Row from(Collective collective, uint64_t bytes) { return {collective, Path::dpu, 2, bytes, kUnlimitedBytes}; }
// Of one block.
constexpr Row pairs(Collective collective) { return from(collective, 256 * kKiB); }

// Up to there the socket buffers hide the transfer by themselves. Inside one node it is a memory copy, and what an
// ibarrier or a scan takes is mostly waiting for others (docs/performance/policy.md).
constexpr Row kMeasured[] = {
    from(Collective::ibcast, 256 * kKiB),
    from(Collective::igather, 512 * kKiB),
    pairs(Collective::igatherv),
    from(Collective::iscatter, 512 * kKiB),
    pairs(Collective::iscatterv),
    from(Collective::iallgather, 512 * kKiB),
    from(Collective::iallgatherv, 512 * kKiB),
    from(Collective::ialltoall, 512 * kKiB),
    pairs(Collective::ialltoallv),
    pairs(Collective::ialltoallw),
    from(Collective::ireduce, 256 * kKiB),
    from(Collective::iallreduce, 256 * kKiB),
    from(Collective::ireduce_scatter, 256 * kKiB),
    from(Collective::ireduce_scatter_block, 256 * kKiB),
    pairs(Collective::ineighbor_allgather),
    pairs(Collective::ineighbor_allgatherv),
    pairs(Collective::ineighbor_alltoall),
    pairs(Collective::ineighbor_alltoallv),
    pairs(Collective::ineighbor_alltoallw),
    from(Collective::window, 0),
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

Table Table::measured() {
  Table table;
  for (const Row& row : kMeasured) table.append(row);
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

bool Table::offloads(Collective collective, uint32_t nodes) const {
  // A later host row may hide a dpu row; asking at the ends of every row is exact, as answers change only there.
  for (const Row& row : by_collective_[static_cast<size_t>(collective)]) {
    if (choose(collective, row.from_bytes, nodes).path == Path::dpu) return true;
    if (row.to_bytes == kUnlimitedBytes) continue;
    if (choose(collective, row.to_bytes, nodes).path == Path::dpu) return true;
  }
  return false;
}

bool Table::offloads(uint32_t nodes) const {
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    if (offloads(static_cast<Collective>(i), nodes)) return true;
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
