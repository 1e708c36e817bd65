// SPDX-License-Identifier: BSD-3-Clause
// The text form of a table.
#include "policy/policy.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace offpath::policy {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(kSpace) + 1));
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

base::Status bad_row(std::string_view row, const char* why, const char* advice) {
  return base::Status::error(OFFPATH_ERR_ARGUMENT, "policy row '%.*s' %s. %s",
                             static_cast<int>(row.size() < 60 ? row.size() : 60), row.data(), why, advice);
}

// Of which one would be left out.
base::Status said_twice(std::string_view row) { return bad_row(row, "says one thing twice", "Write one row for each"); }

struct ParsedRow {
  Row row{Collective::ialltoall, Path::host, 1, 0, kUnlimitedBytes};
  bool has_range = false;
  bool has_nodes = false;
  bool has_path = false;
};

// "Known: direct, ring": those that `fits`.
template <typename Fits>
std::string known_algorithms(const Fits& fits) {
  return "Known: " + base::texts_of<offpath_algorithm_t>(fits);
}

base::Status parse_path(std::string_view text, std::string_view option, ParsedRow& parsed) {
  if (parsed.has_path) return said_twice(text);
  const size_t equals = option.find('=');
  parsed.row.path = trim(option.substr(0, equals)) == "dpu" ? Path::dpu : Path::host;
  parsed.has_path = true;
  if (equals == std::string_view::npos) return {};
  if (parsed.row.path == Path::host)
    return bad_row(text, "names an algorithm for the host, where the MPI chooses", "End it with :host");
  const auto algorithm = algorithm_named(trim(option.substr(equals + 1)));
  if (!algorithm) {
    return bad_row(text, "names no known algorithm", known_algorithms([](auto) { return true; }).c_str());
  }
  parsed.row.algorithm = *algorithm;
  return {};
}

base::Status parse_option(std::string_view text, std::string_view option, ParsedRow& parsed) {
  const std::string_view word = trim(option.substr(0, option.find('=')));
  if (word == "host" || word == "dpu") return parse_path(text, option, parsed);
  if (option.starts_with("nodes=")) {
    const auto nodes = parse_size(option.substr(6));
    if (!nodes || *nodes > UINT32_MAX)
      return bad_row(text, "has no valid number of nodes", "Write for instance nodes=2");
    if (std::exchange(parsed.has_nodes, true)) return said_twice(text);
    parsed.row.min_nodes = static_cast<uint32_t>(*nodes);
    return {};
  }
  const size_t dash = option.find('-');
  if (dash == std::string_view::npos) {
    return bad_row(text, "has a part that is neither a range nor a path", "Write for instance ialltoall:512K-inf:dpu");
  }
  const auto from_bytes = parse_size(trim(option.substr(0, dash)));
  const auto to_bytes = parse_size(trim(option.substr(dash + 1)));
  if (!from_bytes || !to_bytes) return bad_row(text, "has a size that is no number", "Write for instance 512K-inf");
  if (*from_bytes >= *to_bytes) return bad_row(text, "has an empty range", "Write the smaller size first");
  if (std::exchange(parsed.has_range, true)) return said_twice(text);
  parsed.row.from_bytes = *from_bytes;
  parsed.row.to_bytes = *to_bytes;
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
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (name != "*" && name != collective_name(collective)) continue;
    known = true;
    const bool has_own_wish = has_size(collective) && !is_collective(collective);
    if (name == "*" && has_own_wish && parsed.row.path == Path::dpu) continue;
    const bool sizeless = !has_size(collective) && parsed.has_range;
    if (name != "*" && sizeless) {
      return bad_row(text, "has a range, but a window has no size that could be looked up in it",
                     "Leave the range out");
    }
    const bool incapable = !knows(collective, parsed.row.algorithm);
    if (name != "*" && incapable) {
      return bad_row(text, "names an algorithm that this collective does not know",
                     known_algorithms([&](auto each) { return knows(collective, each); }).c_str());
    }
    if (sizeless || incapable) continue;
    parsed.row.collective = collective;
    out.push_back(parsed.row);
  }
  if (!known) return bad_row(text, "names no known collective", known_collectives().c_str());
  return {};
}

}  // namespace

std::optional<offpath_algorithm_t> algorithm_named(std::string_view name) {
  for (const auto& row : base::Words<offpath_algorithm_t>::rows) {
    if (name == row.text) return row.word;
  }
  return std::nullopt;
}

base::Status Table::apply(std::string_view text, Origin origin) {
  std::vector<Row> added;
  while (!text.empty()) {
    std::string_view line = next_part(text, '\n');
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::string_view row = next_part(line, ',');
      if (row.empty()) continue;
      if (auto status = parse_row(row, added); !status.ok()) return status;
    }
  }
  for (Row& row : added) {
    row.origin = origin;
    append(row);
  }
  return {};
}

}  // namespace offpath::policy
