// SPDX-License-Identifier: BSD-3-Clause
// offpath-executor: the process that runs the target regions of one host process. Started by offpathd with the
// channel's socket; user code runs here and nowhere else.
#include "arguments/arguments.hpp"
#include "executor/executor.hpp"
#include "executor/task_runner.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
// What regions start, in the background for one, must not hold the channel: the host would wait for its end.
void keep_descriptors() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 3, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
#endif
  for (int fd = 3; fd < 4096; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);  // before Linux 5.11
}

// A thread's stack is as long as `ulimit -s` says; where that is unlimited, the C library would give it 2 MiB.
void give_threads_long_stacks() {
  constexpr size_t kStackBytes = 256 << 20;
  rlimit limit{};
  pthread_attr_t attributes;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) return;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
}
}  // namespace

int main(int argc, char** argv) {
  using offpath::device::DeviceKind;
  offpath::executor::Options options;
  int spin_us = 0, session = -1;
  offpath::executor::TaskOptions tasks;
  int service = 0;
  arguments::Arguments app("offpath-executor",
                           "Runs target regions for one program. offpathd starts it; nothing to be started by hand.");
  app.version("offpath-executor " OFFPATH_VERSION);
  app.number("--socket-fd", options.socket, 0, INT_MAX, "descriptor of the connection to the host");
  app.required("--socket-fd");
  app.number("--session-fd", session, 0, INT_MAX, "descriptor to read the keys of a sealed connection from");
  app.word("--channel", options.segment, {{"segment", true}, {"stream", false}}, "segment: the host is this system");
  app.number("--memory", options.memory_bytes, 0, arguments::kUnlimited,
             "most bytes that regions can map; 0: half of the machine's");
  app.number("--max-clients", options.max_clients, 0, UINT32_MAX, "limit of the service, for information");
  app.number("--spin-us", spin_us, 0, 1000000, "how long an idle thread looks for regions before it sleeps");
  app.word("--kind", options.kind,
           {{"software", DeviceKind::software}, {"emulated", DeviceKind::emulated}, {"remote", DeviceKind::remote}},
           "what the device is");
  app.number("--tasks", tasks.board, 0, INT_MAX, "run tasks instead: descriptor of the board they come from");
  app.number("--number", tasks.number, 0, UINT32_MAX, "which executor of tasks this is");
  app.number("--tasks-bell", tasks.bell, 0, INT_MAX, "descriptor that wakes the worker of the service");
  app.number("--tasks-service", service, 1, INT_MAX, "process that ends this one with it");
  app.number("--tasks-memory", tasks.memory_bytes, 0, arguments::kUnlimited,
             "most bytes that functions may allocate; 0: no limit");
  for (const char* name : {"--number", "--tasks-bell", "--tasks-service", "--tasks-memory"}) app.needs(name, "--tasks");
  if (const auto status = app.done(argc, argv)) return *status;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);  // user code gains no rights by programs that it starts
  if (tasks.board >= 0) {
    tasks.socket = options.socket;
    tasks.spin = std::chrono::microseconds(spin_us);
    return run_tasks(tasks, service);
  }
  options.spin = std::chrono::microseconds(spin_us);
  options.line = options.socket;
  if (session >= 0) {
    std::array<uint8_t, offpath::device::kSessionBytes> keys;
    if (read(session, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) return 1;
    close(session);
    options.line = offpath::device::decode_line(options.socket, keys);
    explicit_bzero(keys.data(), keys.size());
  }

  keep_descriptors();
  give_threads_long_stacks();
  signal(SIGPIPE, SIG_IGN);
  setvbuf(stdout, nullptr, _IOLBF, 0);  // output of regions shows when it is made
  setenv("KMP_BLOCKTIME", "0", 0);      // a finished parallel region leaves the DPU's cores alone
  auto& executor = offpath::executor::the_executor();
  if (!executor.open(options).ok()) return 1;  // the host says why
  executor.serve();
  _exit(0);
}
