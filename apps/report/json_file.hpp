// SPDX-License-Identifier: BSD-3-Clause
// The file that an application or a benchmark leaves its results in.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace report {

// Empty when it was written, else one line for the user.
std::string write_json(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace report
