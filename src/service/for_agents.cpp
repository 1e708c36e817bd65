// SPDX-License-Identifier: BSD-3-Clause
#include "service/for_agents.hpp"

#include "base/environment.hpp"
#include "base/local_ranks.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "service/guard.hpp"
#include "service/placement.hpp"
#include "session/launch.hpp"
#include "session/link.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace offpath::service {

using base::Fd;
using base::Result;
using base::Status;
using session::kListenFd;
using session::kTokenFd;

namespace {

constexpr uint32_t kMostDoors = 16;  // their addresses are said in one line

std::string cores_of(const ForAgentsOptions& options) {
  return options.cores.empty() ? base::core_list(base::affinity_of(0)) : options.cores;
}

// Without what this process was given: whoever has started this by ssh waits for these to be closed.
void leave_standard_streams() {
  const Fd null_device(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int fd = 0; fd < 3; ++fd) dup2(null_device.get(), fd);
}

[[noreturn]] void become_service(int listening, int token, char* const* words) {
  setsid();
  leave_standard_streams();
  const int listening_there = fcntl(listening, F_DUPFD_CLOEXEC, 10), token_there = fcntl(token, F_DUPFD_CLOEXEC, 10);
  dup2(listening_there, kListenFd);
  dup2(token_there, kTokenFd);
  base::close_from(kTokenFd + 1);
  // An emulated processor's program is not what /proc/self/exe is; then a command of that name is told to be it.
  const std::string command = base::Environment::text("OFFPATH_SERVICE_PATH");
  execv(command.empty() ? "/proc/self/exe" : command.c_str(), words);
  _exit(127);
}

// Nobody's child, with the service as its own.
[[noreturn]] void become_guard(int listening, int token, char* const* words, const std::string& socket_path) {
  setsid();
  if (fork() != 0) _exit(0);
  signal(SIGCHLD, SIG_DFL);
  prctl(PR_SET_DUMPABLE, 0);  // it has been told the token
  const session::OwnSocketName socket(listening, socket_path);
  const pid_t service = fork();
  if (service == 0) become_service(listening, token, words);
  leave_standard_streams();
  base::close_from(STDERR_FILENO + 1);
  base::log_open(base::Environment::text("OFFPATH_SERVICE_LOG").c_str(), base::LogLevel::info);
  if (service > 0) guard(service, socket);
  _exit(0);
}

Status start(const ForAgentsOptions& options, const std::string& path) {
  auto listening = session::listen_at(path);
  if (!listening.ok()) return listening.status();
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot make a pipe");
  const Fd token_read(ends[0]), token_write(ends[1]);
  if (write(token_write.get(), options.token, sizeof(options.token)) != sizeof(options.token))
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot pass the job token");
  std::vector<std::string> texts = {
      "offpathd", "--listen-fd", std::to_string(kListenFd), "--token-fd", std::to_string(kTokenFd), "--socket-path",
      path,       "--cores",     cores_of(options)};
  if (options.shares_cores) texts.push_back("--share");
  if (!options.executor.empty()) texts.insert(texts.end(), {"--executor", options.executor});
  std::vector<char*> words;
  for (std::string& text : texts) words.push_back(text.data());
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot start the service");
  if (child == 0) become_guard(listening->get(), token_read.get(), words.data(), path);
  waitpid(child, nullptr, 0);
  return {};
}

// One that is there, or a new one.
Result<Fd> find_or_start(const ForAgentsOptions& options) {
  const auto folder = session::runtime_folder();
  if (!folder.ok()) return folder.status();
  const std::string path = session::socket_path(folder.value(), options.token, session::For::agents);
  auto socket = session::connect_to(path, options.timeout_ms);
  if (socket.status().code() != OFFPATH_ERR_NO_SERVICE) return socket;
  const auto lock = session::lock_folder(folder.value(), options.timeout_ms);
  if (!lock.ok()) return lock.status();
  socket = session::connect_to(path, options.timeout_ms);
  if (socket.status().code() != OFFPATH_ERR_NO_SERVICE) return socket;
  unlink(path.c_str());
  session::remove_dead_sockets(folder.value());
  if (const Status status = start(options, path); !status.ok()) return status;
  return session::connect_to(path, options.timeout_ms);
}

// A door for an agent, its first or a further one. It may just be leaving.
Result<session::AttachReply> open_door(const ForAgentsOptions& options, uint32_t number) {
  session::AttachRequest request{};
  request.version = session::kLinkVersion;
  request.kind = static_cast<uint32_t>(session::RequestKind::agent);
  request.flags = number;
  memcpy(request.token, options.token, sizeof(request.token));
  session::AttachReply reply{};
  Status status;
  for (int attempt = 0; attempt < 3; ++attempt) {
    const auto socket = find_or_start(options);
    if (!socket.ok()) return socket.status();
    status = session::send_message(socket->get(), &request, sizeof(request));
    if (status.ok())
      status = session::receive_message(socket->get(), &reply, sizeof(reply), options.timeout_ms).status();
    if (status.code() != OFFPATH_ERR_SERVICE_LOST) break;
  }
  if (!status.ok()) return status;
  reply.text[sizeof(reply.text) - 1] = '\0';
  if (reply.status != OFFPATH_OK) return Status::error(base::known_code(reply.status), "%s", reply.text);
  if (reply.version != session::kLinkVersion || reply.address_bytes > sizeof(reply.address)) {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "the service here is of another release. Install one");
  }
  return reply;
}

}  // namespace

Result<agent::Reached> reach_for_agent(const ForAgentsOptions& options) {
  agent::Reached out;
  uint32_t doors = 1;
  for (uint32_t number = 0; number < doors; ++number) {
    const auto reply = open_door(options, number);
    if (!reply.ok()) return reply.status();
    out.addresses.emplace_back(reply->address, reply->address + reply->address_bytes);
    doors = std::min(reply->workers, kMostDoors);
  }
  utsname machine{};
  uname(&machine);
  out.version = OFFPATH_VERSION;
  out.machine = machine.machine;
  out.cores = count_cores(cores_of(options));
  return out;
}

}  // namespace offpath::service
