// SPDX-License-Identifier: BSD-3-Clause
// The requests that offpath-model answers, as JSON; python/offpath/plan/model.py is the other side.
//
//   {"do": "simulate", "machine": {...}, "nodes", "ppn" | "node_of": [node by rank], "cores": [[cores of a node]...],
//    "service_cores": [core by node], "policy": ["text"...],
//    "operations": [{"kind", "bytes", "path": "host"|"dpu"|"policy", "algorithm", "root", "members", "sent_bytes"}],
//    "ranks": [[["compute", ns], ["post", op...], ["wait", op...], ["sync"], ["test", ns], ["idle", ns], ["draw",
//    queue]]] | "program": [...] of every rank, "sections": [[acts]...], "queues": [[sections in order]...]}
//      -> {"end_ns", "act_end_ns", "drawn", "done_ns", "paths", "service_ns", "events", "core_ns"}
//   {"do": "price", "machine", "ppn", "nodes": [n...], "operations": [...]}
//      -> {"prices": [[{"total_ns", "wire_ns", "agent_ns", "hops_ns", "hops", "hides"} by operation] by n]}
//
// Cores may be left out: then every rank and, where the machine says so, every service has one of its own.
#pragma once

#include "base/result.hpp"

#include <nlohmann/json.hpp>

namespace offpath::model {

// The answer, or one line for the user.
base::Result<nlohmann::json> answer(const nlohmann::json& request);

}  // namespace offpath::model
