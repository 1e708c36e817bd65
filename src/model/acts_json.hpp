// SPDX-License-Identifier: BSD-3-Clause
// The part of a request that says what the ranks do (job_json.hpp): "ranks" or "program", "sections", "queues".
#pragma once

#include "base/result.hpp"
#include "model/job.hpp"

#include <nlohmann/json.hpp>

namespace offpath::model {

// Reads into the job, whose places and operations are known; one line for the user on what is wrong.
base::Status read_acts(const nlohmann::json& request, Job& job);

}  // namespace offpath::model
