// SPDX-License-Identifier: BSD-3-Clause
#include "model/job_json.hpp"

#include "model/acts_json.hpp"
#include "model/checks_json.hpp"
#include "model/job.hpp"
#include "model/scale.hpp"

#include <algorithm>
#include <new>

namespace offpath::model {
namespace {

using base::Result;
using base::Status;
using nlohmann::json;

class Request {
 public:
  explicit Request(const json& request) : request_(request) {}

  Result<json> answer() {
    const json what = request_.value("do", json());
    if (!request_.contains("machine")) return bad("machine", "the contents of a machine file");
    auto machine = read_machine(request_["machine"]);
    if (!machine.ok()) return machine.status();
    job_.machine = machine.value();
    table_ = policy::Table::measured({job_.machine.rate_bytes_per_ns, !job_.machine.service.own_cores});
    for (const json& text : request_.value("policy", json::array())) {
      if (!text.is_string()) return bad("policy", "texts");
      if (const Status status = table_.apply(text.get<std::string>()); !status.ok()) return status;
    }
    if (what == "simulate") return simulated();
    if (what == "price") return priced();
    return bad("do", "simulate or price");
  }

 private:
  Result<json> simulated() {
    for (const auto step : {&Request::read_places, &Request::read_cores, &Request::read_operations}) {
      if (const Status status = (this->*step)(); !status.ok()) return status;
    }
    if (const Status status = read_acts(request_, job_); !status.ok()) return status;
    auto outcome = simulate(job_);
    if (!outcome.ok()) return outcome.status();
    json paths = json::array();
    for (const Operation& operation : job_.operations) {
      paths.push_back(operation.path == policy::Path::dpu ? "dpu" : "host");
    }
    return json{{"end_ns", outcome->end_ns},         {"act_end_ns", outcome->act_end_ns}, {"done_ns", outcome->done_ns},
                {"service_ns", outcome->service_ns}, {"events", outcome->events},         {"paths", paths},
                {"drawn", outcome->drawn},           {"core_ns", outcome->core_ns}};
  }

  Result<json> priced() {
    const json sizes = request_.value("nodes", json::array());
    const json ppn = request_.value("ppn", json(1));
    if (!is_list(sizes, [](const json& n) { return is_index(n, kMaxRanks) && n > 0; })) return bad("nodes", "a list");
    if (!is_index(ppn, 1024) || ppn == 0) return bad("ppn", "1 to 1023");
    json prices = json::array();
    for (const json& size : sizes) {
      job_.nodes = size.get<uint32_t>();
      const auto ranks = uint64_t{job_.nodes} * ppn.get<uint32_t>();
      if (ranks > kMaxRanks) return bad("nodes x ppn", "at most a million ranks");
      job_.node_of.assign(ranks, 0);
      for (size_t rank = 0; rank < ranks; ++rank)
        job_.node_of[rank] = static_cast<uint32_t>(rank / ppn.get<uint32_t>());
      job_.operations.clear();
      if (const Status status = read_operations(); !status.ok()) return status;
      json& row = prices.emplace_back(json::array());
      for (const Operation& operation : job_.operations) {
        if (operation.remote != Remote::none)
          return bad("kind", "a collective: one-sided operations and messages are simulated only");
        auto found = price(job_.machine, operation, job_.nodes, ppn.get<uint32_t>());
        if (!found.ok()) return found.status();
        row.push_back({{"total_ns", found->total_ns},
                       {"wire_ns", found->wire_ns},
                       {"agent_ns", found->agent_ns},
                       {"hops_ns", found->hops_ns},
                       {"hops", found->hops},
                       {"hides", found->hides}});
      }
    }
    return json{{"prices", prices}};
  }

  Status read_places() {
    const json nodes = request_.value("nodes", json(1));
    if (!is_index(nodes, kMaxRanks) || nodes == 0) return bad("nodes", "a number from 1 on");
    job_.nodes = nodes.get<uint32_t>();
    if (request_.contains("node_of")) {
      const json& node_of = request_["node_of"];
      if (!node_of.is_array() || node_of.empty() || node_of.size() > kMaxRanks) return bad("node_of", "a node by rank");
      for (const json& node : node_of) {
        if (!is_index(node, job_.nodes)) return bad("node_of", "numbers below nodes");
        job_.node_of.push_back(node.get<uint32_t>());
      }
      return {};
    }
    const json ppn = request_.value("ppn", json(1));
    if (!is_index(ppn, kMaxRanks) || ppn == 0 || ppn.get<uint64_t>() * job_.nodes > kMaxRanks) {
      return bad("ppn", "a number from 1 on, at most a million ranks in all");
    }
    for (uint32_t node = 0; node < job_.nodes; ++node) job_.node_of.insert(job_.node_of.end(), ppn.get<size_t>(), node);
    return {};
  }

  Status read_cores() {
    const auto ranks = static_cast<uint32_t>(job_.node_of.size());
    std::vector<uint32_t> seen(job_.nodes, 0), first(job_.nodes, 0);
    const json cores = request_.value("cores", json());
    if (!cores.is_null() && (!cores.is_array() || cores.size() != job_.nodes))
      return bad("cores", "a list for each node");
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint32_t node = job_.node_of[rank];
      uint32_t core = rank;
      if (!cores.is_null()) {
        const json& own = cores[node];
        if (!own.is_array() || own.empty()) return bad("cores", "a list for each node");
        const json& chosen = own[seen[node] % own.size()];
        if (!is_index(chosen, kMaxRanks)) return bad("cores", "numbers");
        core = chosen.get<uint32_t>();
      }
      if (seen[node]++ == 0) first[node] = core;
      job_.rank_core.push_back(core);
    }
    const json services = request_.value("service_cores", json());
    if (!services.is_null() && (!services.is_array() || services.size() != job_.nodes)) {
      return bad("service_cores", "a core for each node");
    }
    const uint32_t beyond = ranks == 0 ? 0 : *std::max_element(job_.rank_core.begin(), job_.rank_core.end()) + 1;
    for (uint32_t node = 0; node < job_.nodes; ++node) {
      uint32_t core = job_.machine.service.own_cores ? beyond + node : first[node];
      if (!services.is_null()) {
        if (!is_index(services[node], kMaxRanks)) return bad("service_cores", "numbers");
        core = services[node].get<uint32_t>();
      }
      job_.service_core.push_back(core);
    }
    return {};
  }

  Status read_operations() {
    for (const json& each : request_.value("operations", json::array())) {
      Operation operation;
      if (const Status status = read_operation(each, operation); !status.ok()) return status;
      job_.operations.push_back(std::move(operation));
    }
    return {};
  }

  Status read_operation(const json& each, Operation& operation) {
    if (!each.is_object() || !each.value("kind", json()).is_string())
      return bad("operation", "an object with its kind");
    if (const Status status = set_kind(operation, each["kind"].get<std::string>()); !status.ok()) return status;
    const auto ranks = static_cast<uint32_t>(job_.node_of.size());
    if (each.contains("members")) {
      for (const json& member : each["members"]) {
        if (!is_index(member, ranks)) return bad("members", "ranks");
        operation.members.push_back(member.get<uint32_t>());
      }
    } else {
      for (uint32_t rank = 0; rank < ranks; ++rank) operation.members.push_back(rank);
    }
    const size_t size = operation.members.size();
    if (size == 0 || (operation.remote != Remote::none && size != 2))
      return bad("members", "origin and target, sender and receiver, or a team");
    const json bytes = each.value("bytes", json(0)), root = each.value("root", json(0));
    if (!is_bytes(bytes)) return bad("bytes", "0 to 16 TiB");
    if (!is_index(root, size)) return bad("root", "a member");
    operation.bytes = bytes.get<uint64_t>();
    operation.root = root.get<uint32_t>();
    for (const json& row : each.value("sent_bytes", json::array())) {
      if (!is_list(row, is_bytes) || row.size() != size) return bad("sent_bytes", "bytes by member and peer");
      operation.sent_bytes.push_back(row.get<std::vector<uint64_t>>());
    }
    if (!operation.sent_bytes.empty() && operation.sent_bytes.size() != size)
      return bad("sent_bytes", "a row by member");
    const json name = each.value("algorithm", json("default")), path = each.value("path", json("policy"));
    if (!name.is_string()) return bad("algorithm", "a name");
    const auto algorithm = policy::algorithm_named(name.get<std::string>());
    if (!algorithm) return bad("algorithm", "a name that the policy has");
    operation.algorithm = *algorithm;
    if (path == "policy") {
      choose(operation);
    } else if (path == "host" || path == "dpu") {
      operation.path = path == "dpu" ? policy::Path::dpu : policy::Path::host;
    } else {
      return bad("path", "host, dpu or policy");
    }
    return {};
  }

  void choose(Operation& operation) const {
    const auto kind = is_one_sided(operation) ? policy::Collective::window : operation.kind;
    uint64_t bytes = operation.bytes;
    // Rows of irregular collectives mean one block.
    if (operation.remote == Remote::none && policy::is_irregular(kind)) bytes /= operation.members.size();
    std::vector<uint32_t> nodes;
    for (const uint32_t rank : operation.members) nodes.push_back(job_.node_of[rank]);
    std::sort(nodes.begin(), nodes.end());
    const auto count = std::unique(nodes.begin(), nodes.end()) - nodes.begin();
    const policy::Choice choice = table_.choose(kind, bytes, static_cast<uint32_t>(count));
    operation.path = choice.path;
    if (operation.algorithm == OFFPATH_ALGORITHM_DEFAULT) operation.algorithm = choice.algorithm;
  }

  const json& request_;
  Job job_;
  policy::Table table_;
};

}  // namespace

Result<json> answer(const json& request) {
  if (!request.is_object()) return bad("request", "a JSON object");
  try {
    return Request(request).answer();
  } catch (const json::exception&) {  // the library's own word for a value of another type than it is read as
    return bad("a value of the request", "another type");
  } catch (const std::bad_alloc&) {
    return bad("request", "one that fits into memory");
  }
}

}  // namespace offpath::model
