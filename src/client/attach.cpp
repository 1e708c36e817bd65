// SPDX-License-Identifier: BSD-3-Clause
// Attaching: find the job's service on this node, or start it, and hand it the session segment.
#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/process.hpp"
#include "base/random.hpp"
#include "base/result.hpp"
#include "base/standard_descriptors.hpp"
#include "client/launcher.hpp"
#include "client/session.hpp"
#include "client/share.hpp"

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

// All of attaching ends by then.
class Deadline {
 public:
  Deadline()
      : limit_ms_(static_cast<int>(Environment::number("OFFPATH_SERVICE_START_TIMEOUT_MS", 10000, 1, 600000))),
        end_ns_(offpath::base::clock_ns() + static_cast<uint64_t>(limit_ms_) * 1000000) {}
  int limit_ms() const { return limit_ms_; }
  bool over() const { return offpath::base::clock_ns() >= end_ns_; }
  int left_ms() const {
    const uint64_t now_ns = offpath::base::clock_ns();
    return now_ns >= end_ns_ ? 1 : static_cast<int>((end_ns_ - now_ns + 999999) / 1000000);
  }

 private:
  int limit_ms_;
  uint64_t end_ns_;
};

// A connection to the job's service, which is started if there is none; then `started` is its process. Processes of a
// node take turns only for that, and wait for its answer side by side.
Result<Fd> reach(const std::string& folder, const offpath_attach_params_t& params, const Deadline& deadline,
                 Fd& started) {
  const std::string path = local::socket_path(folder, params.job_token);
  auto socket = local::connect_to(path, deadline.left_ms());
  if (socket.status().code() != OFFPATH_ERR_NO_SERVICE) return socket;
  const auto lock = local::lock_folder(folder, deadline.left_ms());
  if (!lock.ok()) return lock.status();
  socket = local::connect_to(path, deadline.left_ms());
  if (socket.status().code() != OFFPATH_ERR_NO_SERVICE) return socket;
  unlink(path.c_str());
  local::remove_dead_sockets(folder);
  if (deadline.over()) return Status::error(OFFPATH_ERR_STATE, "somebody's service did not answer");
  auto service = offpath::client::start_service(path, params);
  if (!service.ok()) return service.status();
  started = std::move(service.value());
  socket = local::connect_to(path, deadline.left_ms());
  if (socket.status().code() == OFFPATH_ERR_NO_SERVICE) return Status::error(OFFPATH_ERR_SERVICE_LOST, "it has ended");
  return socket;
}

// OFFPATH_ERR_SERVICE_LOST: it has left meanwhile. OFFPATH_ERR_STATE: no answer.
Status greet(offpath_session& session, Fd socket, const offpath_attach_params_t& params, const Deadline& deadline) {
  local::AttachRequest request{};
  request.version = local::kLinkVersion;
  request.segment_bytes = session.segment.bytes();
  request.flags = (params.flags & OFFPATH_ATTACH_NODE_ONLY) != 0 ? local::kNodeOnly : 0;
  memcpy(request.token, params.job_token, sizeof(request.token));
  Status status = local::send_message(socket.get(), &request, sizeof(request), session.segment.fd());
  if (!status.ok()) return status;
  const auto reply =
      local::receive_message(socket.get(), &session.service, sizeof(session.service), deadline.left_ms());
  if (!reply.ok()) {
    const bool silent = reply.status().code() == OFFPATH_ERR_NO_SERVICE;
    return silent ? Status::error(OFFPATH_ERR_STATE, "no answer") : reply.status();
  }
  session.service.text[sizeof(session.service.text) - 1] = '\0';
  if (session.service.status != OFFPATH_OK) {
    return Status::error(offpath::base::known_code(session.service.status), "%s", session.service.text);
  }
  if (session.service.version != local::kLinkVersion ||
      session.service.address_bytes > sizeof(session.service.address)) {
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "library and service are of different releases. Install them together");
  }
  session.life.socket = std::move(socket);
  return {};
}

Status attach(offpath_session& session, const offpath_attach_params_t& params, const Deadline& deadline) {
  const auto folder = local::runtime_folder();
  if (!folder.ok()) return folder.status();
  local::SocketFile& file = session.life.socket_file;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Fd started;
    // Before it is reached, as another service may take its place, and path, meanwhile.
    file = local::SocketFile(local::socket_path(folder.value(), params.job_token));
    auto socket = reach(folder.value(), params, deadline, started);
    if (started.valid()) file = local::SocketFile(file.path());
    Status status = socket.status();
    if (status.ok()) status = greet(session, std::move(socket.value()), params, deadline);
    if (status.code() == OFFPATH_ERR_SERVICE_LOST) continue;
    if (status.code() != OFFPATH_ERR_STATE) return status;
    // Whoever has started it knows what to end.
    if (started.valid()) {
      offpath::base::kill_process(started, 0);
      file.remove();
    }
    return Status::error(OFFPATH_ERR_NO_SERVICE,
                         "the service does not answer within %d ms (it is stopped, or its cores are busy). Free a core "
                         "for it, or raise OFFPATH_SERVICE_START_TIMEOUT_MS",
                         deadline.limit_ms());
  }
  file.remove();
  return Status::error(OFFPATH_ERR_NO_SERVICE,
                       "the service ends as soon as it is started. OFFPATH_SERVICE_LOG=FILE "
                       "keeps its last words");
}

// Pages of the shared memory come when they are handed out.
Result<std::unique_ptr<offpath_session>> open_session(const offpath_attach_params_t& params, uint64_t shared_bytes,
                                                      const Deadline& deadline) {
  auto segment = Memfd::create("offpath-session", local::kSegmentBytes + shared_bytes);
  if (!segment.ok()) return segment.status();
  auto session = std::make_unique<offpath_session>(std::move(segment.value()));
  session->probe = offpath::base::random_u64();
  session->header().probe_value = session->probe;
  Status status = attach(*session, params, deadline);
#ifdef PR_SET_PTRACER
  if (status.code() == OFFPATH_ERR_PERMISSION) {
    // ptrace_scope=1 lets in only whom we name. Naming one process would undo what an MPI library may have allowed
    // for its own shared-memory transport, so it is any process of this user, and only where that is needed.
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    status = attach(*session, params, deadline);
  }
#endif
  if (!status.ok()) return status;
  session->params = params;
  if (params.service_cores != nullptr) {
    session->service_cores = params.service_cores;
    session->params.service_cores = session->service_cores.c_str();
  }
  session->life.begin(session->service.process, session->service.thread);
  session->tasks_stay_home = Environment::text("OFFPATH_TASK_BALANCE") == "off";
  session->moved_memory = offpath::client::moved::Moved::make(session->segment, session->heap);
  return session;
}

uint64_t memory_to_share(uint32_t sessions) {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = Environment::number("OFFPATH_SHARED_MEMORY_BYTES", machine, 0, uint64_t{1} << 46);
  return offpath::client::share_of(bytes, sessions);
}

}  // namespace

extern "C" offpath_status_t offpath_session_attach(const offpath_attach_params_t* params, offpath_session_t** out,
                                                   offpath_error_t* error) {
  offpath::base::ErrnoGuard guard;
  if (params == nullptr || out == nullptr || params->struct_bytes != sizeof(*params) ||
      (params->flags & ~uint32_t{OFFPATH_ATTACH_NODE_ONLY}) != 0 || params->reserved != 0) {
    const Status status =
        Status::error(OFFPATH_ERR_ARGUMENT, "offpath_session_attach: params of an unknown size or flags");
    status.copy_to(error);
    return status.code();
  }
  *out = nullptr;
  const Deadline deadline;
  const offpath::base::StandardDescriptors standard;
  auto session = open_session(*params, memory_to_share(params->node_sessions_count), deadline);
  // More than the limits of this process (file size, address space) or of the service allow.
  if (session.status().code() == OFFPATH_ERR_NO_MEMORY) session = open_session(*params, 0, deadline);
  if (session.ok()) {
    *out = session->release();
  } else {
    session.status().copy_to(error);
  }
  return session.status().code();
}
