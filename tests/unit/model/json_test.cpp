// SPDX-License-Identifier: BSD-3-Clause
// What offpath-model is asked and says: every mistake is one line.
#include "model/job_json.hpp"
#include "model/machine.hpp"

#include <gtest/gtest.h>

namespace offpath::model {
namespace {

using nlohmann::json;

json machine() {
  return json::parse(R"({"format": "offpath-machine", "version": 1,
    "network": {"rate_bytes_per_ns": {"median": 0.125, "min": 0.12}, "peak_bytes_per_ns": 2, "burst_bytes": 0,
                "latency_ns": 1000, "wire_efficiency": 0.99, "header_bytes": 80},
    "memory": {"copy_bytes_per_ns": 10, "cma_bytes_per_ns": 5, "reduce_bytes_per_ns": 4},
    "native": {"family": "mpich", "eager_bytes": 65536, "chunk_bytes": 131072, "window_bytes": 262144, "post_ns": 1,
               "message_ns": 1, "send_ns_per_byte": 0.1, "receive_ns_per_byte": 0.1, "crossing_efficiency": 1},
    "service": {"own_cores": true, "speed": 1, "chunk_bytes": 57344, "window_bytes": 917504, "post_ns": 1,
                "operation_ns": 1, "step_ns": 1, "message_ns": 1, "send_ns_per_byte": 0.1, "receive_ns_per_byte": 0.1,
                "wake_ns": 1, "host_wake_ns": 1, "crossing_efficiency": 1}})");
}

json request() {
  return {{"do", "simulate"},
          {"machine", machine()},
          {"nodes", 2},
          {"ppn", 1},
          {"operations", {{{"kind", "ialltoall"}, {"bytes", 1 << 20}}}},
          {"program", json::parse(R"([["post", 0], ["compute", 1000], ["wait", 0]])")}};
}

std::string complaint(const json& wrong) {
  const auto result = answer(wrong);
  return result.ok() ? "" : result.status().text();
}

TEST(ModelJson, AnswersAndSaysWhichPathThePolicyTook) {
  const auto result = answer(request());
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result.value()["paths"], json({"dpu"}));
  EXPECT_GT(result.value()["end_ns"], 4e6);
  json host = request();
  host["policy"] = {"ialltoall:host"};
  EXPECT_EQ(answer(host).value()["paths"], json({"host"}));
}

TEST(ModelJson, SectionsAreDrawnFromTheirQueue) {
  json drawing = request();
  drawing["operations"] = json::parse(R"([{"kind": "fetch", "bytes": 8, "members": [1, 0]}])");
  drawing["program"] = json::parse(R"([["draw", 0]])");
  drawing["sections"] = json::parse(R"([[["post", 0], ["wait", 0]]])");
  drawing["queues"] = json::parse("[[0]]");
  const auto result = answer(drawing);
  ASSERT_TRUE(result.ok()) << result.status().text();
  EXPECT_EQ(result.value()["drawn"], json::parse("[[0], []]"));
  drawing["queues"] = json::parse("[[0, 0]]");
  EXPECT_NE(complaint(drawing).find("queue"), std::string::npos);
}

TEST(ModelJson, MachineFilesAreChecked) {
  const auto complains = [](const char* section, const char* field, const json& value, const char* word) {
    json file = machine();
    value.is_null() ? void(file[section].erase(field)) : void(file[section][field] = value);
    const auto result = read_machine(file);
    ASSERT_FALSE(result.ok()) << section << '.' << field;
    EXPECT_NE(std::string(result.status().text()).find(word), std::string::npos) << result.status().text();
  };
  complains("network", "rate_bytes_per_ns", nullptr, "network.rate_bytes_per_ns is missing");
  complains("network", "rate_bytes_per_ns", 0, "network.rate_bytes_per_ns is 0");
  complains("network", "latency_ns", -1, "latency_ns is -1");
  complains("service", "speed", "fast", "service.speed is missing");
  complains("native", "family", "lam", "native.family");
  EXPECT_FALSE(read_machine(json::array()).ok());
  json old = machine();
  old["version"] = 0;
  EXPECT_FALSE(read_machine(old).ok());
}

TEST(ModelJson, MistakesAreOneLine) {
  const auto with = [](const char* name, const json& value) {
    json changed = request();
    changed[name] = value;
    return complaint(changed);
  };
  json price_of_a_get = request();
  price_of_a_get["do"] = "price";
  price_of_a_get["nodes"] = {2};
  price_of_a_get["operations"] = json::parse(R"([{"kind": "get", "members": [0, 1]}])");
  const std::string complaints[] = {complaint(json::array()),
                                    complaint(json::object()),
                                    with("do", "dance"),
                                    with("nodes", 0),
                                    with("nodes", "many"),
                                    with("ppn", -1),
                                    with("operations", {{{"kind", "magic"}}}),
                                    with("operations", {{{"kind", "ibcast"}, {"root", 7}}}),
                                    with("operations", {{{"kind", "ibcast"}, {"bytes", -1}}}),
                                    with("operations", {{{"kind", "get"}, {"members", {0}}}}),
                                    with("operations", {{{"kind", "ialltoallv"}, {"sent_bytes", {{1, 2}}}}}),
                                    with("operations", {3}),
                                    with("program", json::parse(R"([["post", 9]])")),
                                    with("program", json::parse(R"([["sing"]])")),
                                    with("program", json::parse(R"([["compute", -5]])")),
                                    with("program", 4),
                                    with("program", json::parse(R"([["draw", 0]])")),
                                    with("program", json::parse(R"([["draw"]])")),
                                    with("sections", json::parse(R"([[]])")),
                                    with("sections", json::parse(R"([[["post", 0]]])")),
                                    with("sections", json::parse(R"([[["sync"]]])")),
                                    with("queues", json::parse(R"([[0]])")),
                                    with("queues", 3),
                                    with("policy", {"ialltoall:maybe"}),
                                    with("cores", {{0}}),
                                    with("service_cores", {"x", "y"}),
                                    with("machine", 1),
                                    with("do", "price"),
                                    complaint(price_of_a_get)};
  for (const std::string& text : complaints) {
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

// Wherever a value stands, one of another type is answered, or refused in one line.
TEST(ModelJson, NoTypeOfAnyValueIsTooMuch) {
  json whole = request();
  whole["policy"] = {"ialltoall:dpu"};
  whole["node_of"] = {0, 1};
  whole["cores"] = json::parse("[[0], [1]]");
  whole["service_cores"] = {2, 3};
  whole["sections"] = json::parse(R"([[["compute", 10]]])");
  whole["queues"] = json::parse("[[0]]");
  whole["operations"].push_back(
      {{"kind", "ialltoallv"}, {"members", {0, 1}}, {"sent_bytes", {{1, 2}, {3, 4}}}, {"path", "host"}});
  whole["operations"].push_back({{"kind", "ibcast"}, {"bytes", 8}, {"root", 1}, {"algorithm", "chain"}});
  ASSERT_EQ(complaint(whole), "");
  json prices = whole;
  prices["do"] = "price";
  prices["nodes"] = {1, 2};
  const json others[] = {nullptr,
                         true,
                         -1,
                         1.5,
                         uint64_t{1} << 63,
                         "\xc3\xa4",
                         "",
                         json::array(),
                         json::object(),
                         {{"median", 1}},
                         json::parse("[[[]]]")};
  for (const json& right : {whole, prices}) {
    const json leaves = right.flatten();
    for (const auto& [path, leaf] : leaves.items()) {
      for (json::json_pointer at(path); !at.empty(); at.pop_back()) {
        for (const json& other : others) {
          json wrong = right;
          wrong[at] = other;
          std::string text;
          ASSERT_NO_THROW(text = complaint(wrong)) << at << " is " << other;
          EXPECT_EQ(text.find('\n'), std::string::npos) << text;
        }
      }
    }
  }
}

}  // namespace
}  // namespace offpath::model
