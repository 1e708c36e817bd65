// SPDX-License-Identifier: BSD-3-Clause
// Attaching: find the job's service on this node, or start it, and hand it the session segment.
#include "base/environment.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "client/launcher.hpp"
#include "client/session.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

using offpath::base::Environment;
using offpath::base::Fd;
using offpath::base::Memfd;
using offpath::base::Result;
using offpath::base::Status;
namespace local = offpath::session;

namespace {

// Connects and exchanges attach messages. OFFPATH_ERR_SERVICE_LOST: the service left meanwhile, try again.
Status greet(offpath_session& session, const offpath_attach_params_t& params, int timeout_ms) {
  auto socket = local::connect_to(session.socket_path);
  if (!socket.ok()) return socket.status();
  local::AttachRequest request{};
  request.version = local::kLinkVersion;
  request.segment_bytes = session.segment.bytes();
  memcpy(request.token, params.job_token, sizeof(request.token));
  Status status = local::send_message(socket->get(), &request, sizeof(request), session.segment.fd());
  if (!status.ok()) return status;
  const auto reply = local::receive_message(socket->get(), &session.service, sizeof(session.service), timeout_ms);
  if (!reply.ok()) return reply.status();
  session.service.text[sizeof(session.service.text) - 1] = '\0';
  if (session.service.status != OFFPATH_OK) {
    return Status::error(offpath::base::known_code(session.service.status), "%s", session.service.text);
  }
  if (session.service.version != local::kLinkVersion ||
      session.service.address_bytes > sizeof(session.service.address)) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "library and service are of different releases. Install them together");
  }
  session.socket = std::move(socket.value());
  return {};
}

Status attach(offpath_session& session, const offpath_attach_params_t& params) {
  const auto folder = local::runtime_folder();
  if (!folder.ok()) return folder.status();
  session.socket_path = local::socket_path(folder.value(), params.job_token);
  const int timeout_ms = static_cast<int>(Environment::number("OFFPATH_SERVICE_START_TIMEOUT_MS", 10000, 1, 600000));
  Fd lock(open(folder.value().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  while (flock(lock.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  Status status;
  for (int attempt = 0; attempt < 3; ++attempt) {
    status = greet(session, params, timeout_ms);
    if (status.code() == OFFPATH_ERR_SERVICE_LOST) continue;
    if (status.code() != OFFPATH_ERR_NO_SERVICE || session.service.status != OFFPATH_OK) return status;
    unlink(session.socket_path.c_str());
    const Status started = offpath::client::start_service(session.socket_path, params);
    if (!started.ok()) return started;
    status = greet(session, params, timeout_ms);
    const bool gone = status.code() == OFFPATH_ERR_SERVICE_LOST ||
                      (status.code() == OFFPATH_ERR_NO_SERVICE && session.service.status == OFFPATH_OK);
    if (!gone) return status;
  }
  unlink(session.socket_path.c_str());
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "the service ends as soon as it is started. OFFPATH_SERVICE_LOG=FILE "
                       "keeps its last words");
}

// With as much shared memory as the machine has: pages come when they are handed out. Without any where the process's
// limits (file size, address space) do not allow it.
Result<Memfd> create_segment() {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = Environment::number("OFFPATH_SHARED_MEMORY_BYTES", machine, 0, uint64_t{1} << 46);
  auto segment =
      Memfd::create("offpath-session", local::kSegmentBytes + bytes / local::kHeaderBytes * local::kHeaderBytes);
  return segment.ok() ? std::move(segment) : Memfd::create("offpath-session", local::kSegmentBytes);
}

}  // namespace

extern "C" offpath_status_t offpath_session_attach(const offpath_attach_params_t* params, offpath_session_t** out,
                                                   offpath_error_t* error) {
  offpath::base::ErrnoGuard guard;
  Status status;
  if (params == nullptr || out == nullptr || params->struct_bytes != sizeof(*params) || params->flags != 0) {
    status = Status::error(OFFPATH_ERR_ARGUMENT, "offpath_session_attach: params of an unknown size or flags");
    status.copy_to(error);
    return status.code();
  }
  *out = nullptr;
  auto segment = create_segment();
  if (!segment.ok()) {
    segment.status().copy_to(error);
    return segment.status().code();
  }
  auto session = std::make_unique<offpath_session>(std::move(segment.value()));
  session->probe = offpath::base::random_u64();
  session->header().probe_value = session->probe;
  status = attach(*session, *params);
#ifdef PR_SET_PTRACER
  if (status.code() == OFFPATH_ERR_PERMISSION) {
    // ptrace_scope=1 lets in only whom we name. Naming one process would undo what an MPI library may have allowed
    // for its own shared-memory transport, so it is any process of this user, and only where that is needed.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    status = attach(*session, *params);
  }
#endif
  if (!status.ok()) {
    status.copy_to(error);
    return status.code();
  }
  session->service_pid = session->service.process;
  *out = session.release();
  return OFFPATH_OK;
}
