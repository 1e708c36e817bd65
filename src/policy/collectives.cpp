// SPDX-License-Identifier: BSD-3-Clause
#include "policy/policy.hpp"

namespace offpath::policy {
namespace {

constexpr uint32_t algorithms_of(offpath_collective_kind_t kind) {
  uint32_t set = 1u << OFFPATH_ALGORITHM_DEFAULT;
#define OFFPATH_EXPANSION(row_kind, NAME, from, function) \
  if (kind == OFFPATH_##row_kind) set |= 1u << OFFPATH_ALGORITHM_##NAME;
#include <offpath/words/algorithms.def>
  return set;
}

enum class Size : uint8_t { kAlike, kBlock, kNone };
using enum Size;

struct CollectiveInfo {
  const char* name;
  offpath_collective_kind_t kind;
  Size size;
  const char* blocking;
  const char* shown;
  bool other = false;  // than a collective
  uint32_t algorithms = other ? 1u << OFFPATH_ALGORITHM_DEFAULT : algorithms_of(kind);
};
// In the order of Collective.
constexpr CollectiveInfo kCollectives[] = {
#define OFFPATH_POLICY_ROW(name, kind, size, from, blocking, shown) {#name, OFFPATH_##kind, size, blocking, shown},
#define OFFPATH_POLICY_OTHER(name, size, from, shown) {#name, OFFPATH_EXCHANGE, size, "", shown, true},
#include <offpath/words/policy_rows.def>
};

const CollectiveInfo& info(Collective collective) { return kCollectives[static_cast<size_t>(collective)]; }

}  // namespace

const char* collective_name(Collective collective) { return info(collective).name; }
bool is_irregular(Collective collective) { return info(collective).size != kAlike; }
bool is_collective(Collective collective) { return !info(collective).other; }
bool has_size(Collective collective) { return info(collective).size != kNone; }
offpath_collective_kind_t kind_of(Collective collective) { return info(collective).kind; }
const char* blocking_name(Collective collective) { return info(collective).blocking; }
std::string known_collectives() {
  std::string text = "Known: ";
  for (const CollectiveInfo& each : kCollectives) {
    if (each.shown[0] != '\0') text += std::string(each.shown) + ", ";
  }
  return text + "*";
}
bool knows(Collective collective, offpath_algorithm_t algorithm) {
  return (info(collective).algorithms & 1u << algorithm) != 0;
}

}  // namespace offpath::policy
