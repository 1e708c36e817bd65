// SPDX-License-Identifier: BSD-3-Clause
#include "service/device_service.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "service/placement.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Result;
using base::Status;

namespace {

constexpr int kStoppedLookMs = DeviceService::kStoppedNs / 1000000 / 8;
constexpr int kLingerMs = 50;  // for programs that start while the last one ends
constexpr uint64_t kProofNs = 2'000'000'000;
constexpr size_t kMostGuests = 64;
constexpr size_t kMostCredentials = 8;  // that are looked at at a time

int signal_pipe[2] = {-1, -1};

void on_signal(int number) {
  const char byte = number == SIGCHLD ? 'c' : 't';
  [[maybe_unused]] const ssize_t written = write(signal_pipe[1], &byte, 1);
}

}  // namespace

DeviceService::DeviceService(DeviceServiceOptions options)
    : options_(std::move(options)),
      lobby_({kProofNs, kMostGuests, [this] { return device::Introduction(options_.key, options_.munge); }}) {}

Result<Fd> DeviceService::listen_on(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "'%.80s' is not HOST:PORT. Write it like 0.0.0.0:7001", address.c_str());
  }
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "cannot listen on '%.80s': %s", address.c_str(), gai_strerror(error));
  }
  Fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int one = 1;
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  const bool bound = bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 && listen(socket.get(), 128) == 0;
  const int number = errno;
  freeaddrinfo(found);
  if (!bound) return Status::system_error(OFFPATH_ERR_ARGUMENT, number, "cannot listen on '%.80s'", address.c_str());
  return socket;
}

Status DeviceService::start() {
  executor_ = base::words_of(options_.executor, "offpath-executor");
  if (pipe2(signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  }
  for_agents_ = base::words_of(options_.for_agents, "offpathd");
  if (options_.for_agents.empty()) for_agents_.emplace_back("--for-agents");
  if (!options_.executor.empty()) for_agents_.insert(for_agents_.end(), {"--executor", options_.executor});
  // Services of jobs are nobody's children; here they count, so they become ours.
  if (takes_strangers()) prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGCHLD, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  return bind_this_thread(options_.cores);
}

void DeviceService::serve(int listening) {
  lobby_.open(listening);
  bool had_client = false;
  while (true) {
    std::vector<pollfd> waits{{signal_pipe[0], POLLIN, 0}, {lobby_.event_fd(), POLLIN, 0}};
    for (const Child& child : children_) waits.push_back({child.alive.get(), POLLIN, 0});
    const bool any_stopped = end_stopped();
    const int until_ms = wait_ms(had_client);
    const bool looks = any_stopped && (until_ms < 0 || until_ms > kStoppedLookMs);
    const int ready = poll(waits.data(), waits.size(), looks ? kStoppedLookMs : until_ms);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0 || (ready == 0 && !lobby_.any() && !looks)) break;
    if (bool ends = false; waits[0].revents != 0) {
      hear_signals(ends);
      if (ends) break;
    }
    auto child = children_.begin();
    for (size_t i = 2; i < waits.size(); ++i) {
      const auto next = std::next(child);
      if (waits[i].revents != 0) reap(child);
      child = next;
    }
    had_client |= lobby_.look([this](Lobby::Guest& guest) { return hear(guest); });
  }
  if (!options_.socket_path.empty()) unlink(options_.socket_path.c_str());
  while (!children_.empty()) {
    if (!children_.front().waited) kill(children_.front().process, SIGKILL);
    reap(children_.begin());
  }
  base::log_write(LogLevel::info, "device service ends");
}

// Waits for children that have ended: executors, and services of jobs that became ours.
void DeviceService::hear_signals(bool& ends) {
  char bytes[64];
  for (ssize_t got; (got = read(signal_pipe[0], bytes, sizeof(bytes))) > 0;) {
    ends = ends || memchr(bytes, 't', static_cast<size_t>(got)) != nullptr;
  }
  for (pid_t process; (process = waitpid(-1, nullptr, WNOHANG)) > 0;) {
    for (Child& child : children_) child.waited = child.waited || child.process == process;
  }
}

// The kernel tells of those that a signal stops as of those that end. True: some are stopped now, so look again.
bool DeviceService::end_stopped() {
  bool any = false;
  for (Child& child : children_) {
    const bool stopped = !child.waited && base::is_stopped(child.process);
    any |= stopped;
    if (child.stillness.look(base::clock_ns(), !stopped) != base::Silence::Verdict::silent) continue;
    base::log_write(LogLevel::warn, "executor %d was stopped by a signal, did not go on and is ended", child.process);
    kill(child.process, SIGKILL);
  }
  return any;
}

int DeviceService::wait_ms(bool had_client) const {
  if (lobby_.any()) return lobby_.wait_ms(-1);
  if (takes_strangers() || !children_.empty()) return -1;
  return had_client ? kLingerMs : options_.first_client_timeout_ms;
}

size_t DeviceService::credentials_count() const {
  return static_cast<size_t>(
      std::count_if(children_.begin(), children_.end(), [](const Child& child) { return child.has_credential; }));
}

// Whether he is done with.
bool DeviceService::hear(Lobby::Guest& guest) {
  using Stage = device::Introduction::Stage;
  if (guest.no_room) {
    base::log_write(LogLevel::warn, "refused a connection, as no file descriptor is left. Raise 'ulimit -n'");
    return true;
  }
  if (!takes_strangers()) {
    start_child(lobby_.take(guest), nullptr);
    return true;
  }
  const Stage stage = guest.who.take(guest.socket.get());
  if (stage == Stage::hears) return false;
  if (stage == Stage::credential && credentials_count() >= kMostCredentials) return false;  // later, if there is time
  if (stage == Stage::refused) {
    base::log_write(LogLevel::warn, "refused a connection that did not prove the key");
  } else {
    start_child(lobby_.take(guest), &guest.who);
  }
  return true;
}

}  // namespace offpath::service
