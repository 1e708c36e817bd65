// SPDX-License-Identifier: BSD-3-Clause
#include "service/guard.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "base/silence.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace offpath::service {

void guard(pid_t service, const session::OwnSocketName& socket) {
  prctl(PR_SET_NAME, "offpath-guard");  // who lists services counts none twice
  const uint64_t limit_ns = base::silence_limit_ns();
  const uint64_t interval_ns = base::Silence::interval_ns(limit_ns);
  const timespec nap{static_cast<time_t>(interval_ns / 1000000000), static_cast<long>(interval_ns % 1000000000)};
  base::Silence stillness(limit_ns);
  while (true) {
    siginfo_t about{};
    if (waitid(P_PID, static_cast<id_t>(service), &about, WEXITED | WNOWAIT | (limit_ns == 0 ? 0 : WSTOPPED)) != 0) {
      if (errno == EINTR) continue;
      return;
    }
    if (!base::is_stopped(service)) {
      if (about.si_code == CLD_EXITED || about.si_code == CLD_KILLED || about.si_code == CLD_DUMPED) return;
      stillness.rest();  // it goes on
      continue;
    }
    if (stillness.look(base::clock_ns(), false) == base::Silence::Verdict::silent) {
      base::log_write(base::LogLevel::warn, "the service %d was stopped by a signal, did not go on and is ended",
                      service);
      socket.remove();
      kill(service, SIGKILL);
    }
    nanosleep(&nap, nullptr);
  }
}

}  // namespace offpath::service
