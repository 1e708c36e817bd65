// SPDX-License-Identifier: BSD-3-Clause
// Processes of the device service: each hears what one program or agent wants, and becomes its executor or answers.
#include "service/device_service.hpp"

#include "base/log.hpp"
#include "device/frames.hpp"
#include "device/handover.hpp"
#include "device/probe.hpp"
#include "service/starting.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>

extern char** environ;

namespace offpath::service {

using base::Fd;
using base::LogLevel;
using base::Result;
using base::Status;

namespace {

constexpr int kGreetingMs = 10000;  // as long as programs wait for a device
constexpr int kSocketFd = 3;
constexpr int kSpinUs = 50;

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

// For the executor: the keys of its connection, to be read once, from a descriptor out of the way of the socket's.
Result<int> pass_session(const seal::Session& session, seal::Security security) {
  const auto text = device::encode_session(session, security);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0 || write(ends[1], text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  const int copy = fcntl(ends[0], F_DUPFD, 10);
  close(ends[0]), close(ends[1]);
  if (copy < 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot pass a descriptor");
  return copy;
}

// What its program has, not what the program has that started the service.
void take_limits_of(pid_t program) {
  for (int number = 0; number < RLIM_NLIMITS; ++number) {
    const auto which = static_cast<__rlimit_resource>(number);
    rlimit limit{}, own{};
    if (prlimit(program, which, nullptr, &limit) != 0 || getrlimit(which, &own) != 0) continue;
    if (setrlimit(which, &limit) == 0) continue;
    limit.rlim_max = std::min(limit.rlim_max, own.rlim_max);  // more than ours we may not give
    limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    setrlimit(which, &limit);
  }
  std::ifstream about("/proc/" + std::to_string(program) + "/status");
  for (std::string word; about >> word;) {
    if (unsigned mask = 0; word == "Umask:" && about >> std::oct >> mask) umask(mask);
  }
}

}  // namespace

void DeviceService::start_child(Fd socket, device::Introduction* who) {
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) return;
  Fd read_end(alive[0]), write_end(alive[1]);
  const bool full = children_.size() - credentials_count() >= options_.max_clients;
  const bool has_credential = who != nullptr && who->stage() == device::Introduction::Stage::credential;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    // With the service its executors end.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(write_end.get(), F_SETFD, 0);
    if (getppid() == parent) become_executor(socket.get(), who, full);
    _exit(1);
  }
  if (child > 0) children_.push_back({child, std::move(read_end), false, base::Silence{kStoppedNs}, has_credential});
  base::log_write(LogLevel::info, "executor %d starts", child);
}

// In the child, which is still one of ours: who asks, and what does its program want?
Status DeviceService::admit(int socket, device::Introduction* who, bool full, std::vector<std::string>& words) {
  words = executor_;
  words.insert(words.end(),
               {"--socket-fd", std::to_string(kSocketFd), "--memory", std::to_string(options_.memory_bytes),
                "--max-clients", std::to_string(options_.max_clients)});
  if (who != nullptr) {
    if (const Status status = who->hear_request(socket, kGreetingMs); !status.ok()) return status;
    if (who->purpose() != device::Purpose::regions) answer(socket, *who);
    const int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    words.insert(words.end(), {"--channel", "stream", "--kind", "remote"});
    const auto session = pass_session(who->session(), who->security());
    if (!session.ok()) return session.status();
    words.insert(words.end(), {"--session-fd", std::to_string(session.value())});
    for (char** entry = environ; *entry != nullptr; ++entry) environment_.push_back(*entry);
  } else {
    const auto peer = session::peer_credentials(socket);
    if (!peer.ok()) return peer.status();
    if (peer->uid != getuid())
      return Status::error(OFFPATH_ERR_PERMISSION, "the device service belongs to another user");
    auto handover = device::receive_handover(socket, kGreetingMs);
    if (!handover.ok()) return handover.status();
    words.insert(words.end(), {"--spin-us", options_.shares_cores ? "0" : std::to_string(kSpinUs)});
    dup2(handover->output.get(), STDOUT_FILENO);
    dup2(handover->error.get(), STDERR_FILENO);
    if (fchdir(handover->folder.get()) != 0) base::log_write(LogLevel::warn, "cannot enter a program's folder");
    environment_ = std::move(handover->environment);
    take_limits_of(peer->pid);
  }
  if (full) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "the device serves %u programs already (its limit). Try later, or raise "
                         "offpathd's --max-clients",
                         options_.max_clients);
  }
  return {};
}

// In the child: an agent asks for its job's service, or a host what this machine is like.
void DeviceService::answer(int socket, device::Introduction& who) {
  for (const int number : {SIGTERM, SIGINT, SIGCHLD}) signal(number, SIG_DFL);
  const pid_t starter = getppid();
  Status sent;
  if (who.purpose() == device::Purpose::probe) {
    sent = who.answer(socket,
                      device::about_this_machine(static_cast<uint32_t>(jobs_of(starter).size()), options_.max_clients));
    if (sent.ok()) device::serve_probe(who.line(socket));
  } else {
    const auto request = device::decode_request(who.request());
    const StartingOptions options{for_agents_, options_.cores, options_.shares_cores, options_.max_clients, starter};
    const auto line = request.ok() ? start_as(who.user(), request.value(), options) : request.status();
    sent = who.answer(socket, device::encode_answer(line));
    base::log_write(LogLevel::info, "an agent asked for its job's service: %s",
                    line.ok() ? "it has it" : line.status().text());
  }
  if (!sent.ok()) base::log_write(LogLevel::warn, "no answer to an agent: %s", sent.text());
  _exit(0);
}

void DeviceService::become_executor(int socket, device::Introduction* who, bool full) {
  std::vector<std::string> words;
  Status status = admit(socket, who, full, words);
  if (status.ok()) {
    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGCHLD, SIG_DFL);
    const int copy = fcntl(socket, F_DUPFD, 10);  // out of the way
    dup2(copy, kSocketFd);
    close(copy);
    auto arguments = pointers(words);
    auto environment = pointers(environment_);
    execvpe(arguments[0], arguments.data(), environment.data());
    status = Status::system_error(OFFPATH_ERR_NO_SERVICE, errno,
                                  "cannot execute '%.100s' (it runs the regions). Install it", words[0].c_str());
    socket = kSocketFd;
  }
  device::Description refusal;
  refusal.status = status.code();
  snprintf(refusal.text, sizeof(refusal.text), "%s", status.text());
  // Whoever does not know the key learns nothing.
  if (status.code() != OFFPATH_ERR_PERMISSION) {
    const device::Line line = who == nullptr ? device::Line(socket) : who->line(socket);
    [[maybe_unused]] const Status sent = device::send_hello(line, refusal, -1);
  }
  base::log_write(LogLevel::warn, "refused a program: %s", status.text());
}

void DeviceService::reap(std::list<Child>::iterator child) {
  while (!child->waited && waitpid(child->process, nullptr, 0) < 0 && errno == EINTR) {
  }
  // libomp's registration of a process that did not end by itself.
  char name[64];
  snprintf(name, sizeof(name), "/dev/shm/__KMP_REGISTERED_LIB_%d_%d", child->process, static_cast<int>(getuid()));
  unlink(name);
  base::log_write(LogLevel::info, "executor %d has ended", child->process);
  children_.erase(child);
}

}  // namespace offpath::service
