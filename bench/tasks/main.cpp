// SPDX-License-Identifier: BSD-3-Clause
// What a task costs: time from submission to the end of an empty one, alone, by testing and by waiting; and how many are done in a
// second with many under way. With --ping in turns with round trips of the way to where they run. One process, no MPI.
// `offpath bench tasks` runs it.
#include <offpath/offpath.h>

#include "arguments/arguments.hpp"
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "ping.hpp"

namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

int fail(const char* what, const char* why) {
  fprintf(stderr, "bench tasks: %s: %s\n", what, why);
  return 1;
}

enum class Await { test, wait };

double one(offpath_session_t* session, const offpath_task_params_t& task, Await how) {
  const auto begin = Clock::now();
  offpath_op_t* op = nullptr;
  if (offpath_task_submit(session, &task, &op) != OFFPATH_OK) return -1;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  while (status == OFFPATH_IN_PROGRESS)
    status = how == Await::test ? offpath_op_test(op) : offpath_op_wait(op, UINT64_MAX);
  const double us = us_since(begin);
  offpath_op_free(op);
  return status == OFFPATH_OK ? us : -1;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Its median, as a number of its own, the fastest, and what nine of ten are within.
void say(nlohmann::json& out, const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  out[name] = values[values.size() / 2];
  out[name + "_min"] = values.front();
  out[name + "_p90"] = values[values.size() * 9 / 10];
}

double rate(offpath_session_t* session, const offpath_task_params_t& task, uint32_t count) {
  std::vector<offpath_op_t*> ops(512, nullptr);  // in a ring
  const auto begin = Clock::now();
  for (uint32_t i = 0; i < count + ops.size(); ++i) {
    offpath_op_t*& op = ops[i % ops.size()];
    if (op != nullptr && offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK) return -1;
    offpath_op_free(op);
    op = nullptr;
    if (i < count && offpath_task_submit(session, &task, &op) != OFFPATH_OK) return -1;
  }
  return count / us_since(begin) * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  std::string library, json, cores, ping_to;
  int serve_port = 0;
  uint32_t repeats = 2000, count = 200000;
  arguments::Arguments app("offpath-bench-tasks", "Measures what tasks cost.");
  app.text("--functions", library, "shared object with the functions");
  app.text("--ping", ping_to, "HOST:PORT of one that answers pings: measure these, too, in turns");
  app.number("--serve-pings", serve_port, 0, 65535, "answer them at this port instead, for one connection");
  app.text("--cores", cores, "of the service");
  app.number("--repeats", repeats, 1, 10000000, "tasks that are timed alone");
  app.number("--count", count, 1, 100000000, "tasks that are timed together");
  app.text("--json", json, "file for the results");
  if (const auto status = app.done(argc, argv)) return *status;
  if (serve_port != 0) return bench::serve_pings(serve_port);
  bench::Ping ping;
  if (!ping_to.empty() && !ping.open(ping_to)) return fail("nobody answers", ping_to.c_str());
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  params.flags = OFFPATH_ATTACH_NODE_ONLY;
  params.service_cores = cores.empty() ? nullptr : cores.c_str();
  std::random_device random;
  for (uint8_t& byte : params.job_token) byte = static_cast<uint8_t>(random());
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
  if (offpath_session_attach(&params, &session, &error) != OFFPATH_OK) return fail("attach", error.text);
  const offpath_function_params_t function{sizeof(function), 0, library.c_str(), "nothing", "nothing 1"};
  offpath_task_params_t task{};
  task.struct_bytes = sizeof(task);
  if (offpath_function_register(session, &function, &task.function, &error) != OFFPATH_OK)
    return fail("register", error.text);
  std::vector<double> tested, waited, round_trips;
  for (uint32_t i = 0; i < repeats + 100; ++i) {
    const double by_test = one(session, task, Await::test), by_wait = one(session, task, Await::wait);
    const double round_trip = ping_to.empty() ? 0 : ping.once();
    if (by_test < 0 || by_wait < 0 || round_trip < 0) return fail("task", "it failed");
    if (i >= 100) tested.push_back(by_test), waited.push_back(by_wait), round_trips.push_back(round_trip);
  }
  const double per_second = rate(session, task, count);
  offpath_session_counters_t counters{};
  counters.struct_bytes = sizeof(counters);
  offpath_session_counters(session, &counters);
  offpath_session_detach(session);
  if (per_second < 0) return fail("many tasks", "one failed");
  nlohmann::json out{{"tasks_per_second", per_second},
                     {"repeats", repeats},
                     {"count", count},
                     {"workers", counters.service_workers_count}};
  say(out, "empty_task_test_us", tested);
  say(out, "empty_task_wait_us", waited);
  if (!ping_to.empty()) {
    say(out, "round_trip_us", round_trips);
    printf("round trip           %8.2f us\n", median(round_trips));
  }
  printf("empty task, tested   %8.2f us\nempty task, awaited  %8.2f us\nmany tasks           %8.0f per second\n",
         median(tested), median(waited), per_second);
  if (!json.empty()) {
    std::ofstream file(json);
    file << out.dump(2) << '\n';
    if (!file.flush()) return fail("cannot write", json.c_str());
  }
  return 0;
}
