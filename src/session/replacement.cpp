// SPDX-License-Identifier: BSD-3-Clause
#include "session/replacement.hpp"

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "session/launch.hpp"
#include "session/reception.hpp"

#include <poll.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstring>

namespace offpath::session {

using base::Environment;
using base::Fd;
using base::Result;
using base::Status;

namespace {

constexpr int kEndingMs = 1000;

// As the launcher has it; else where this program lies.
std::string own_program() {
  std::string chosen = Environment::text("OFFPATH_SERVICE_PATH");
  if (!chosen.empty()) return chosen;
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length <= 0 ? "" : std::string(path, static_cast<size_t>(length));
}

// Its socket closes a little before it has ended.
Status why_not(const Fd& process, const Status& status) {
  pollfd wait{process.get(), POLLIN, 0};
  if (poll(&wait, 1, kEndingMs) == 0) return status;
  return Status::error(OFFPATH_ERR_NO_SERVICE, "it ends as soon as it is started");
}

// As one who watches: every service answers that at once, and begins nothing.
Result<int32_t> greet(const std::string& path, const Fd& process, int timeout_ms) {
  const auto socket = connect_to(path, timeout_ms);
  if (!socket.ok()) return why_not(process, socket.status());
  AttachRequest request{};
  request.version = kLinkVersion;
  request.kind = static_cast<uint32_t>(RequestKind::observe);
  if (const Status status = send_message(socket->get(), &request, sizeof(request)); !status.ok())
    return why_not(process, status);
  pollfd waits[2] = {{socket->get(), POLLIN, 0}, {process.get(), POLLIN, 0}};
  if (poll(waits, 2, timeout_ms) == 0) return Status::error(OFFPATH_ERR_NO_SERVICE, "it does not answer");
  AttachReply reply{};
  const Status answered = receive_message(socket->get(), &reply, sizeof(reply), 0).status();
  if (!answered.ok()) return why_not(process, answered);
  reply.text[sizeof(reply.text) - 1] = '\0';
  if (reply.status != OFFPATH_OK) return Status::error(base::known_code(reply.status), "%s", reply.text);
  if (reply.version != kLinkVersion) {
    return Status::error(OFFPATH_ERR_NO_SERVICE, "it is of a release that the libraries of running jobs do not know");
  }
  return reply.process;
}

}  // namespace

// Descriptors are given to it under the same numbers.
Replacement::Replacement(int argc, char** argv) {
  const std::string program = own_program();
  bool listens = false, has_token = false;
  for (int i = 1; i + 1 < argc; ++i) {
    listens |= strcmp(argv[i], "--listen-fd") == 0 && std::to_string(kListenFd) == argv[i + 1];
    has_token |= strcmp(argv[i], "--token-fd") == 0 && std::to_string(kTokenFd) == argv[i + 1];
  }
  if (!listens || !has_token || program.empty()) return;
  words_.assign(argv, argv + argc);
  words_.front() = program;
}

Result<int32_t> Replacement::start(const std::string& socket_path, std::span<const uint8_t> token) const {
  if (words_.empty()) return Status::error(OFFPATH_ERR_NO_SERVICE, "the service was started by hand");
  const int timeout_ms = static_cast<int>(Environment::number("OFFPATH_SERVICE_START_TIMEOUT_MS", 10000, 1, 600000));
  // No name of a service's socket, until it is one; and no longer, as there is a limit.
  const std::string next = socket_path.substr(0, socket_path.rfind('.')) + ".next";
  unlink(next.c_str());
  const auto process = launch(words_, next, token);
  if (!process.ok()) return process.status();
  auto answered = greet(next, process.value(), timeout_ms);
  if (answered.ok() && rename(next.c_str(), socket_path.c_str()) == 0) return answered;
  const Status status = answered.ok() ? Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot give it the socket")
                                      : answered.status();
  base::kill_process(process.value(), 0);
  unlink(next.c_str());
  return status;
}

bool replace(const Replacement& replacement, const Fd& asker, const Result<PeerCredentials>& credentials,
             const AttachRequest& request, uint32_t clients, const std::string& socket_path,
             std::span<const uint8_t> token) {
  AttachReply reply{};
  reply.version = kLinkVersion;
  reply.clients = clients;
  Status status = check_peer(credentials, request);
  if (status.ok()) {
    const auto process = replacement.start(socket_path, token);
    status = process.status();
    if (status.ok()) reply.process = process.value();
  }
  if (status.ok()) {
    base::log_write(base::LogLevel::info, "the service %d takes this one's place", reply.process);
  } else {
    base::log_write(base::LogLevel::warn, "this service stays, as no other one takes its place: %s", status.text());
    fill_refusal(reply, status);
  }
  [[maybe_unused]] const auto sent = send_message(asker.get(), &reply, sizeof(reply));
  return status.ok();
}

}  // namespace offpath::session
