// SPDX-License-Identifier: BSD-3-Clause
// offpath-executor: the process that runs the target regions of one host process. Started by offpathd with the
// channel's socket; user code runs here and nowhere else.
#include "executor/executor.hpp"
#include "executor/task_runner.hpp"

#include <CLI/CLI.hpp>

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>

namespace {
// Ends with the service, whatever it is doing then.
int run_tasks(const offpath::executor::TaskOptions& options, int service) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != service) return 1;
  signal(SIGPIPE, SIG_IGN);
  setenv("KMP_BLOCKTIME", "0", 0);
  offpath::executor::TaskRunner runner(options);
  if (const auto status = runner.open(); !status.ok()) {
    fprintf(stderr, "offpath-executor: %s\n", status.text());
    return 1;
  }
  runner.serve();
  _exit(0);
}
}  // namespace

int main(int argc, char** argv) {
  using offpath::device::DeviceKind;
  offpath::executor::Options options;
  std::string channel = "segment";
  int spin_us = 0;
  CLI::App app("Runs target regions for one program. offpathd starts it; nothing to be started by hand.",
               "offpath-executor");
  app.set_version_flag("--version", "offpath-executor " OFFPATH_VERSION);
  app.add_option("--socket-fd", options.socket, "descriptor of the connection to the host")->required();
  app.add_option("--channel", channel, "segment (same system) or stream")->check(CLI::IsMember({"segment", "stream"}));
  app.add_option("--memory", options.memory_bytes, "most bytes that regions can map; 0: half of the machine's");
  app.add_option("--max-clients", options.max_clients, "limit of the service, for information");
  app.add_option("--number", options.number, "number of the device in the host's list");
  app.add_option("--spin-us", spin_us, "how long an idle thread looks for regions before it sleeps")
      ->check(CLI::Range(0, 1000000));
  app.add_option("--kind", options.kind, "what the device is")
      ->transform(CLI::CheckedTransformer(std::map<std::string, DeviceKind>{
          {"software", DeviceKind::software}, {"emulated", DeviceKind::emulated}, {"remote", DeviceKind::remote}}));
  offpath::executor::TaskOptions tasks;
  int service = 0;
  auto* board = app.add_option("--tasks", tasks.board, "run tasks instead: descriptor of the board they come from");
  app.add_option("--tasks-bell", tasks.bell, "descriptor that wakes the worker of the service")->needs(board);
  app.add_option("--tasks-service", service, "process that ends this one with it")->needs(board);
  app.add_option("--tasks-memory", tasks.memory_bytes, "most bytes that functions may allocate; 0: no limit")
      ->needs(board);
  CLI11_PARSE(app, argc, argv);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // user code gains no rights by programs that it starts
  if (tasks.board >= 0) {
    tasks.socket = options.socket;
    tasks.number = static_cast<uint32_t>(options.number);
    tasks.spin = std::chrono::microseconds(spin_us);
    return run_tasks(tasks, service);
  }
  options.spin = std::chrono::microseconds(spin_us);
  options.segment = channel == "segment";

  signal(SIGPIPE, SIG_IGN);
  setvbuf(stdout, nullptr, _IOLBF, 0);  // output of regions shows when it is made
  setenv("KMP_BLOCKTIME", "0", 0);      // a finished parallel region leaves the DPU's cores alone
  auto& executor = offpath::executor::the_executor();
  if (const auto status = executor.open(options); !status.ok()) {
    fprintf(stderr, "offpath-executor: %s\n", status.text());
    return 1;
  }
  executor.serve();
  _exit(0);
}
