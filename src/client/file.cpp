// SPDX-License-Identifier: BSD-3-Clause
// Files: descriptors handed to the service, and transfers posted on them.
#include "base/result.hpp"
#include "client/described.hpp"
#include "client/session.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>
#include <span>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace files = offpath::files;
namespace layout = offpath::session;
using layout::OpKind;

void offpath_session::take_file_result(offpath_op& op) const {
  files::ResultRecord shared;
  memcpy(&shared, at<uint8_t>(op.record_offset), sizeof(shared));
  op.bytes = std::min(op.bytes, shared.bytes);
  op.system_error = shared.system_error;
}

namespace {

// The descriptor is on its way before the slot that waits for it.
offpath_status_t hand_over(offpath_session& session, uint32_t number, int descriptor, offpath_op** posted) {
  const layout::FileMessage message{layout::kFile, {}, number};
  const Status sent = layout::send_message(session.life.socket.get(), &message, sizeof(message), descriptor);
  if (!sent.ok()) return OFFPATH_ERR_SERVICE_LOST;
  auto op = std::make_unique<offpath_op>(session.own, OpKind::file_open, "opening of a file");
  op->address = number;
  return session.post(std::move(op), posted);
}

Status open_file(offpath_session& session, int descriptor, offpath_file** out) {
  if (!session.mine()) return Status::error(OFFPATH_ERR_STATE, "the session belongs to the parent process");
  if (offpath_session_shares_memory(&session) == 0) {
    return Status::error(
        OFFPATH_ERR_STATE,
        "the service is on another machine, which does not have this one's files. Read and write them here");
  }
  if (!session.life.check()) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the service on this node was lost");
  auto file = std::make_unique<offpath_file>();
  file->session = &session;
  offpath_op* posted = nullptr;
  offpath_status_t status = OFFPATH_OK;
  {
    std::lock_guard lock(session.mutex);
    auto& taken = session.file_numbers;
    file->number = static_cast<uint32_t>(std::find(taken.begin(), taken.end(), false) - taken.begin());
    if (file->number == files::kMaxFiles) {
      return Status::error(OFFPATH_ERR_NO_MEMORY,
                           "%u files are open at the service (there is room for no more). Close some",
                           files::kMaxFiles);
    }
    if (file->number == taken.size()) taken.push_back(false);
    status = hand_over(session, file->number, descriptor, &posted);
    if (status == OFFPATH_OK) taken[file->number] = true;
  }
  if (status == OFFPATH_OK) status = offpath_op_wait(posted, UINT64_MAX);
  offpath_op_free(posted);
  if (status == OFFPATH_OK) {
    *out = file.release();
    return {};
  }
  std::lock_guard lock(session.mutex);
  if (file->number < session.file_numbers.size()) session.file_numbers[file->number] = false;
  if (status == OFFPATH_ERR_NOT_STARTED) status = OFFPATH_ERR_SERVICE_LOST;
  return Status::error(status, "the service does not take the descriptor: %s",
                       status == OFFPATH_ERR_ARGUMENT
                           ? "it is of no plain file, or appends, or goes past the page cache"
                           : offpath_status_string(status));
}

offpath_status_t post(offpath_file_t* file, const offpath_file_transfer_t* params, OpKind kind, const char* name,
                      offpath_op_t** out) {
  if (file == nullptr || params == nullptr || out == nullptr) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  *out = nullptr;
  offpath_session& session = *file->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  files::Transfer transfer;
  const offpath_status_t status = offpath::client::describe(*params, file->number, transfer);
  if (status != OFFPATH_OK) return status;
  rlimit limit{};  // is this process's, and not the service's
  if (kind == OpKind::file_write && getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      !files::ends_within(transfer, limit.rlim_cur))
    return OFFPATH_ERR_ARGUMENT;
  const std::span after(params->after, params->after_count);
  const auto is_ours = [&](const offpath_op_t* op) { return op != nullptr && op->session == &session; };
  if (!std::all_of(after.begin(), after.end(), is_ours)) return OFFPATH_ERR_ARGUMENT;
  const auto is_under_way = [](const offpath_op_t* op) {
    return op->status.load(std::memory_order_acquire) == OFFPATH_IN_PROGRESS;
  };
  auto op = std::make_unique<offpath_op>(session.own, kind, name);
  op->record = files::encode(transfer, &op->after_offset);
  op->bytes = transfer.memory.bytes;
  offpath::client::moved::Named named;
  if (session.moved_memory != nullptr)
    offpath::client::moved::add_blocks({&params->memory, 1}, params->layouts, false, named);
  std::lock_guard lock(session.mutex);
  session.use_memory(std::move(named), std::any_of(after.begin(), after.end(), is_under_way));
  op->sequence = session.next_transfer++;
  return session.post_after(std::move(op), after, out);
}

}  // namespace

extern "C" {

offpath_status_t offpath_file_open(offpath_session_t* session, int descriptor, offpath_file_t** file,
                                   offpath_error_t* error) {
  ErrnoGuard guard;
  Status status = Status::error(OFFPATH_ERR_ARGUMENT, "offpath_file_open: an argument is NULL, or no descriptor");
  if (session != nullptr && file != nullptr && descriptor >= 0) {
    *file = nullptr;
    status = open_file(*session, descriptor, file);
  }
  status.copy_to(error);
  return status.code();
}

void offpath_file_close(offpath_file_t* file) {
  if (file == nullptr || !file->session->mine()) return;
  ErrnoGuard guard;
  const std::unique_ptr<offpath_file> owned(file);
  offpath_session& session = *file->session;
  offpath_op* posted = nullptr;
  {
    std::lock_guard lock(session.mutex);
    session.file_numbers[file->number] = false;
    if (!session.life.check()) return;
    auto op = std::make_unique<offpath_op>(session.own, OpKind::file_close, "closing of a file");
    op->address = file->number;
    if (session.post(std::move(op), &posted) != OFFPATH_OK) return;
  }
  offpath_op_wait(posted, UINT64_MAX);
  offpath_op_free(posted);
}

offpath_status_t offpath_file_write(offpath_file_t* file, const offpath_file_transfer_t* transfer, offpath_op_t** op) {
  return post(file, transfer, OpKind::file_write, "write of a file", op);
}

offpath_status_t offpath_file_read(offpath_file_t* file, const offpath_file_transfer_t* transfer, offpath_op_t** op) {
  return post(file, transfer, OpKind::file_read, "read of a file", op);
}

offpath_status_t offpath_file_result(offpath_op_t* op, offpath_file_result_t* result) {
  if (op == nullptr || result == nullptr || result->struct_bytes != sizeof(*result) ||
      (op->kind != OpKind::file_write && op->kind != OpKind::file_read)) {
    return OFFPATH_ERR_ARGUMENT;
  }
  const int32_t status = op->status.load(std::memory_order_acquire);
  if (status == OFFPATH_IN_PROGRESS) return OFFPATH_ERR_STATE;
  result->system_error = op->system_error;
  result->bytes = status == OFFPATH_OK ? op->bytes : 0;
  return OFFPATH_OK;
}

}  // extern "C"
