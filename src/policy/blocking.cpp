// SPDX-License-Identifier: BSD-3-Clause
#include "policy/blocking.hpp"

#include "policy/policy.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace offpath::policy {
namespace {

// The bits of a word; none: it is no word.
std::optional<uint32_t> bits_of(std::string_view word) {
  if (word == "all") return UINT32_MAX;
  if (word == "none") return 0;
  for (uint32_t i = 0; i < kCollectivesCount; ++i) {
    const std::string_view name = blocking_name(static_cast<Collective>(i));
    if (!name.empty() && word == name) return uint32_t{1} << i;
  }
  return std::nullopt;
}

// "alltoall, alltoallv"
std::string known_names() {
  std::string names;
  for (size_t i = 0; i < kCollectivesCount; ++i) {
    const std::string name = blocking_name(static_cast<Collective>(i));
    if (!name.empty()) names += name + ", ";
  }
  return names + "all, none";
}

}  // namespace

base::Result<uint32_t> parse_blocking(std::string_view text) {
  uint32_t bits = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    const auto bit = bits_of(word);
    if (!bit) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT, "OFFPATH_MPI_BLOCKING names '%.*s' (it takes %s). Correct it",
                                 static_cast<int>(std::min<size_t>(word.size(), 40)), word.data(),
                                 known_names().c_str());
    }
    bits |= *bit;
  }
  return bits;
}

}  // namespace offpath::policy
