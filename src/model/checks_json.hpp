// SPDX-License-Identifier: BSD-3-Clause
// What the readers of a request say of what they cannot use, and the checks that they share.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>

namespace offpath::model {

constexpr uint64_t kMaxRanks = uint64_t{1} << 20;
constexpr uint64_t kMaxBytes = uint64_t{1} << 44;
constexpr double kMaxNs = 1e16;

inline base::Status bad(const char* what, const char* needed) {
  return base::Status::error(OFFPATH_ERR_ARGUMENT, "%s is not usable (needed: %s). Correct the request", what, needed);
}

inline bool is_index(const nlohmann::json& value, uint64_t limit) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<uint64_t>() < limit;
}
inline bool is_bytes(const nlohmann::json& value) { return is_index(value, kMaxBytes); }
inline bool is_list(const nlohmann::json& value, bool (*good)(const nlohmann::json&)) {
  return value.is_array() && std::all_of(value.begin(), value.end(), good);
}

}  // namespace offpath::model
