// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

#include <charconv>
#include <optional>

namespace offpath::policy {
namespace {

constexpr uint64_t kKiB = 1024;

struct CollectiveInfo {
  Collective collective;
  const char* name;
  bool irregular;
};
constexpr CollectiveInfo kCollectives[] = {
    {Collective::ialltoall, "ialltoall", false},
    {Collective::ialltoallv, "ialltoallv", true},
};

// Measured in the lab (docs/performance.md): up to 128 KiB per peer the socket buffers hide the transfer by themselves,
// from 256 KiB on they do not. Inside one node it is a memory copy.
constexpr Row kMeasured[] = {
    {Collective::ialltoall, 256 * kKiB, kUnlimitedBytes, 2, Path::dpu},
    {Collective::ialltoallv, 0, kUnlimitedBytes, 2, Path::dpu},
};

const CollectiveInfo& info(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n')) text.remove_suffix(1);
  return text;
}

// Cuts the part before `separator` off `text`.
std::string_view next_part(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view part = trim(text.substr(0, end));
  text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  return part;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  if (text == "inf") return kUnlimitedBytes;
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  unsigned shift = 0;
  if (unit == "K" || unit == "k")
    shift = 10;
  else if (unit == "M" || unit == "m")
    shift = 20;
  else if (unit == "G" || unit == "g")
    shift = 30;
  else if (!unit.empty())
    return std::nullopt;
  if (value > (UINT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

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

base::Status bad_row(std::string_view row, const char* why, const char* advice) {
  return base::Status::error(OFFPATH_ERR_ARGUMENT, "policy row '%.*s' %s. %s",
                             static_cast<int>(row.size() < 60 ? row.size() : 60), row.data(), why, advice);
}

struct ParsedRow {
  Row row{Collective::ialltoall, 0, kUnlimitedBytes, 1, Path::host};
  bool has_range = false;
  bool has_path = false;
};

base::Status parse_option(std::string_view text, std::string_view option, ParsedRow& parsed) {
  if (option == "host" || option == "dpu") {
    parsed.row.path = option == "dpu" ? Path::dpu : Path::host;
    parsed.has_path = true;
    return {};
  }
  if (option.starts_with("nodes=")) {
    const auto nodes = parse_size(option.substr(6));
    if (!nodes || *nodes > UINT32_MAX)
      return bad_row(text, "has no valid number of nodes", "Write for instance nodes=2");
    parsed.row.min_nodes = static_cast<uint32_t>(*nodes);
    return {};
  }
  const size_t dash = option.find('-');
  if (dash == std::string_view::npos) {
    return bad_row(text, "has a part that is neither a range nor a path", "Write for instance ialltoall:512K-inf:dpu");
  }
  const auto from = parse_size(trim(option.substr(0, dash)));
  const auto to = parse_size(trim(option.substr(dash + 1)));
  if (!from || !to) return bad_row(text, "has a size that is no number", "Write for instance 512K-inf");
  if (*from >= *to) return bad_row(text, "has an empty range", "Write the smaller size first");
  parsed.row.from_bytes = *from;
  parsed.row.to_bytes = *to;
  parsed.has_range = true;
  return {};
}

base::Status parse_row(std::string_view text, std::vector<Row>& out) {
  std::string_view rest = text;
  const std::string_view name = next_part(rest, ':');
  ParsedRow parsed;
  while (!rest.empty()) {
    if (auto status = parse_option(text, next_part(rest, ':'), parsed); !status.ok()) return status;
  }
  if (!parsed.has_path) return bad_row(text, "does not say where to run", "End it with :host or :dpu");
  bool known = false;
  for (const CollectiveInfo& candidate : kCollectives) {
    if (name != "*" && name != candidate.name) continue;
    known = true;
    if (candidate.irregular && parsed.has_range) {
      if (name == "*") continue;
      return bad_row(text, "has a range, but the ranks have no common size there and would decide differently",
                     "Leave the range out");
    }
    parsed.row.collective = candidate.collective;
    out.push_back(parsed.row);
  }
  if (!known) return bad_row(text, "names no known collective", "Known: ialltoall, ialltoallv, *");
  return {};
}

}  // namespace

Table Table::measured() {
  Table table;
  table.rows_.assign(std::begin(kMeasured), std::end(kMeasured));
  return table;
}

base::Status Table::apply(std::string_view text) {
  std::vector<Row> added;
  while (!text.empty()) {
    const std::string_view row = next_part(text, ',');
    if (row.empty()) continue;
    if (auto status = parse_row(row, added); !status.ok()) return status;
  }
  rows_.insert(rows_.end(), added.begin(), added.end());
  return {};
}

Path Table::choose(Collective collective, uint64_t bytes, uint32_t nodes) const {
  for (auto row = rows_.rbegin(); row != rows_.rend(); ++row) {
    if (row->collective != collective || nodes < row->min_nodes) continue;
    if (!is_irregular(collective)) {
      if (bytes < row->from_bytes) continue;
      if (row->to_bytes != kUnlimitedBytes && bytes >= row->to_bytes) continue;
    }
    return row->path;
  }
  return Path::host;
}

bool Table::offloads(uint32_t nodes) const {
  // A later host row may hide a dpu row; asking at the first size of every row is exact, as answers change only there.
  for (const Row& row : rows_) {
    for (const Row& edge : rows_) {
      if (choose(row.collective, edge.from_bytes, nodes) == Path::dpu) return true;
      if (edge.to_bytes != kUnlimitedBytes && choose(row.collective, edge.to_bytes, nodes) == Path::dpu) return true;
    }
  }
  return false;
}

std::string Table::print() const {
  std::string text;
  for (const Row& row : rows_) {
    text += collective_name(row.collective);
    if (!is_irregular(row.collective)) text += ":" + format_size(row.from_bytes) + "-" + format_size(row.to_bytes);
    if (row.min_nodes > 1) text += ":nodes=" + std::to_string(row.min_nodes);
    text += row.path == Path::dpu ? ":dpu\n" : ":host\n";
  }
  return text;
}

const char* collective_name(Collective collective) { return info(collective).name; }
bool is_irregular(Collective collective) { return info(collective).irregular; }

}  // namespace offpath::policy
