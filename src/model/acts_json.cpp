// SPDX-License-Identifier: BSD-3-Clause
// What the ranks do: acts, and sections of them that wait in queues.
#include "model/acts_json.hpp"

#include "model/checks_json.hpp"

#include <algorithm>

namespace offpath::model {
namespace {

using base::Status;
using nlohmann::json;

Status read_program(const json& program, const Job& job, std::vector<Act>& acts) {
  static const std::pair<const char*, Act::Kind> kinds[] = {
      {"compute", Act::Kind::compute}, {"idle", Act::Kind::idle}, {"post", Act::Kind::post}, {"wait", Act::Kind::wait},
      {"test", Act::Kind::test},       {"sync", Act::Kind::sync}, {"draw", Act::Kind::draw}};
  if (!program.is_array()) return bad("a rank's program", "a list of acts");
  for (const json& each : program) {
    if (!each.is_array() || each.empty() || !each[0].is_string()) return bad("act", "[name, ...]");
    const auto kind =
        std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& k) { return each[0] == k.first; });
    if (kind == std::end(kinds)) return bad("act", "compute, idle, post, wait, test, sync or draw");
    Act act{kind->second};
    const bool takes_operations = act.kind == Act::Kind::post || act.kind == Act::Kind::wait;
    const bool takes_queue = act.kind == Act::Kind::draw;
    const bool takes_ns = !takes_operations && !takes_queue;
    for (size_t i = 1; i < each.size(); ++i) {
      if (takes_operations && is_index(each[i], job.operations.size())) {
        act.operations.push_back(each[i].get<uint32_t>());
      } else if (takes_queue && i == 1 && is_index(each[i], job.queues.size())) {
        act.queue = each[i].get<uint32_t>();
      } else if (takes_ns && i == 1 && each[i].is_number() && each[i] >= 0 && each[i] <= kMaxNs) {
        act.for_ns = each[i].get<double>();
      } else {
        return bad("act", "operations by number, nanoseconds, or a queue");
      }
    }
    if (takes_queue && each.size() != 2) return bad("draw", "a queue");
    acts.push_back(std::move(act));
  }
  return {};
}

// Before the queues: so a section draws nothing itself.
Status read_sections(const json& request, Job& job) {
  for (const json& section : request.value("sections", json::array())) {
    std::vector<Act> acts;
    if (const Status status = read_program(section, job, acts); !status.ok()) return status;
    if (acts.empty()) return bad("section", "a list of acts, not empty");
    for (const Act& act : acts) {
      const bool moves = std::all_of(act.operations.begin(), act.operations.end(),
                                     [&](uint32_t number) { return is_one_sided(job.operations[number]); });
      if (!moves || act.kind == Act::Kind::sync) return bad("section", "acts of one rank alone");
    }
    job.sections.push_back(std::move(acts));
  }
  return {};
}

Status read_queues(const json& request, Job& job) {
  std::vector<bool> dealt(job.sections.size(), false);
  for (const json& queue : request.value("queues", json::array())) {
    if (!queue.is_array()) return bad("queue", "a list of sections");
    for (const json& section : queue) {
      if (!is_index(section, dealt.size()) || dealt[section.get<size_t>()]) return bad("queue", "a section once");
      dealt[section.get<size_t>()] = true;
    }
    job.queues.push_back(queue.get<std::vector<uint32_t>>());
  }
  return {};
}

}  // namespace

Status read_acts(const json& request, Job& job) {
  for (const auto step : {&read_sections, &read_queues}) {
    if (const Status status = step(request, job); !status.ok()) return status;
  }
  const size_t ranks = job.node_of.size();
  if (request.contains("program")) {
    std::vector<Act> acts;
    if (const Status status = read_program(request["program"], job, acts); !status.ok()) return status;
    job.ranks.assign(ranks, acts);
    return {};
  }
  const json programs = request.value("ranks", json());
  if (!programs.is_array() || programs.size() != ranks) return bad("ranks", "a list of acts by rank");
  for (const json& program : programs) {
    job.ranks.emplace_back();
    if (const Status status = read_program(program, job, job.ranks.back()); !status.ok()) return status;
  }
  return {};
}

}  // namespace offpath::model
