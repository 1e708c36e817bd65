// SPDX-License-Identifier: BSD-3-Clause
// What a task costs: time from submission to the end of an empty one, alone, by testing and by waiting; and how many are done in a
// second with many under way. With --ping in turns with round trips of the way to where they run. One process, no MPI.
// `offpath bench tasks` runs it.
#include <offpath/offpath.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/options.hpp"
#include "../../apps/kit/report.hpp"
#include "ping.hpp"

namespace {

struct Options : kit::Options {
  Options() : kit::Options("offpath-bench-tasks", "Measures what tasks cost.") {}
  std::string library = text(library, "--functions", "shared object with the functions");
  std::string ping_to = text(ping_to, "--ping", "HOST:PORT of one that answers pings: measure these, too, in turns");
  int serve_port =
      number(serve_port, "--serve-pings", 0, 0, 65535, "answer them at this port instead, for one connection");
  std::string cores = text(cores, "--cores", "of the service");
  uint32_t repeats = number(repeats, "--repeats", 2000, 1, 10000000, "tasks that are timed alone");
  uint32_t count = number(count, "--count", 200000, 1, 100000000, "tasks that are timed together");
  std::string json = text(json, "--json", "file for the results");
};

double us_since(std::int64_t begin) { return 1e-3 * static_cast<double>(kit::now_ns() - begin); }

enum class Await { test, wait };

double one(offpath_session_t* session, const offpath_task_params_t& task, Await how) {
  const std::int64_t begin = kit::now_ns();
  offpath_op_t* op = nullptr;
  if (offpath_task_submit(session, &task, &op) != OFFPATH_OK) return -1;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  while (status == OFFPATH_IN_PROGRESS)
    status = how == Await::test ? offpath_op_test(op) : offpath_op_wait(op, UINT64_MAX);
  const double us = us_since(begin);
  offpath_op_free(op);
  return status == OFFPATH_OK ? us : -1;
}

// Its median, as a number of its own, the fastest, and what nine of ten are within.
void say(kit::Json& out, const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  out[name] = values[values.size() / 2];
  out[name + "_min"] = values.front();
  out[name + "_p90"] = values[values.size() * 9 / 10];
}

double rate(offpath_session_t* session, const offpath_task_params_t& task, uint32_t count) {
  std::vector<offpath_op_t*> ops(512, nullptr);  // in a ring
  const std::int64_t begin = kit::now_ns();
  for (uint32_t i = 0; i < count + ops.size(); ++i) {
    offpath_op_t*& op = ops[i % ops.size()];
    if (op != nullptr && offpath_op_wait(op, UINT64_MAX) != OFFPATH_OK) return -1;
    offpath_op_free(op);
    op = nullptr;
    if (i < count && offpath_task_submit(session, &task, &op) != OFFPATH_OK) return -1;
  }
  return count / us_since(begin) * 1e6;
}

int run(const Options& options) {
  const auto fail = [&](const std::string& what, const std::string& why) {
    return options.complain(what + ": " + why);
  };
  if (options.serve_port != 0) return bench::serve_pings(options.serve_port);
  bench::Ping ping;
  if (!options.ping_to.empty() && !ping.open(options.ping_to)) return fail("nobody answers", options.ping_to);
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  params.flags = OFFPATH_ATTACH_NODE_ONLY;
  params.service_cores = options.cores.empty() ? nullptr : options.cores.c_str();
  std::random_device random;
  for (uint8_t& byte : params.job_token) byte = static_cast<uint8_t>(random());
  offpath_session_t* session = nullptr;
  offpath_error_t error{};
  if (offpath_session_attach(&params, &session, &error) != OFFPATH_OK) return fail("attach", error.text);
  const offpath_function_params_t function{sizeof(function), 0, options.library.c_str(), "nothing", "nothing 1"};
  offpath_task_params_t task{};
  task.struct_bytes = sizeof(task);
  if (offpath_function_register(session, &function, &task.function, &error) != OFFPATH_OK)
    return fail("register", error.text);
  std::vector<double> tested, waited, round_trips;
  for (uint32_t i = 0; i < options.repeats + 100; ++i) {
    const double by_test = one(session, task, Await::test), by_wait = one(session, task, Await::wait);
    const double round_trip = options.ping_to.empty() ? 0 : ping.once();
    if (by_test < 0 || by_wait < 0 || round_trip < 0) return fail("task", "it failed");
    if (i >= 100) tested.push_back(by_test), waited.push_back(by_wait), round_trips.push_back(round_trip);
  }
  const double per_second = rate(session, task, options.count);
  offpath_session_counters_t counters{};
  counters.struct_bytes = sizeof(counters);
  offpath_session_counters(session, &counters);
  offpath_session_detach(session);
  if (per_second < 0) return fail("many tasks", "one failed");
  kit::Json out{{"tasks_per_second", per_second},
                {"repeats", options.repeats},
                {"count", options.count},
                {"workers", counters.service_workers_count}};
  say(out, "empty_task_test_us", tested);
  say(out, "empty_task_wait_us", waited);
  if (!options.ping_to.empty()) {
    say(out, "round_trip_us", round_trips);
    printf("round trip           %8.2f us\n", kit::spread(round_trips).median);
  }
  printf("empty task, tested   %8.2f us\nempty task, awaited  %8.2f us\nmany tasks           %8.0f per second\n",
         kit::spread(tested).median, kit::spread(waited).median, per_second);
  return options.end(true, kit::write_json(options.json, out));
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
