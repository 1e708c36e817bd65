// SPDX-License-Identifier: BSD-3-Clause
// Locks of an offloaded window, and what memory a dynamic one has.
#include "client/kept.hpp"
#include "mpi/rma/offloaded_window.hpp"

#include <algorithm>
#include <vector>

namespace offpath::mpi {

offpath_status_t OffloadedWindow::advance(LockWish& wish) {
  if (homecoming_ != nullptr) return homecoming_->advance(wish);
  const offpath_status_t status = offpath_op_test(wish.op);
  if (status != OFFPATH_IN_PROGRESS) offpath_op_free(wish.op);
  return status;
}

int OffloadedWindow::lock(offpath_remote_kind_t kind, const std::vector<int>& targets) {
  std::vector<LockWish> wishes;
  std::vector<int> granted;
  wishes.reserve(targets.size());
  granted.reserve(targets.size());
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = kind;
  offpath_status_t status = OFFPATH_OK;
  for (const int target : targets) {
    remote.target = static_cast<uint32_t>(target);
    LockWish wish{target, kind == OFFPATH_LOCK_EXCLUSIVE};
    const bool at_services = homecoming_ == nullptr || !homecoming_->has_turned();
    if (at_services) status = offpath_remote(locks_, &remote, &wish.op);
    if (homecoming_ != nullptr && client::is_loss(status)) status = OFFPATH_OK;
    if (status != OFFPATH_OK) break;
    wishes.push_back(wish);
  }
  for (LockWish& wish : wishes) {
    offpath_status_t its = advance(wish);
    if (its == OFFPATH_IN_PROGRESS) {
      wait_until("lock", [&] { return (its = advance(wish)) != OFFPATH_IN_PROGRESS; });
    }
    if (its == OFFPATH_OK) granted.push_back(wish.target);
    if (status == OFFPATH_OK) status = its;
  }
  if (status != OFFPATH_OK) unlock(granted);
  return code_of(status);
}

int OffloadedWindow::unlock(const std::vector<int>& targets) {
  std::vector<uint64_t> questions;
  offpath_remote_t remote{};
  remote.struct_bytes = sizeof(remote);
  remote.kind = OFFPATH_UNLOCK;
  offpath_status_t status = OFFPATH_OK;
  for (const int target : targets) {
    if (homecoming_ != nullptr) {
      const uint64_t question = homecoming_->unlock(target);
      if (question != 0) questions.push_back(question);
      if (question != 0) continue;
    }
    remote.target = static_cast<uint32_t>(target);
    // Nobody waits for it: requests reach a target in the order of posting, so the next lock finds it done.
    const offpath_status_t posted = offpath_remote(locks_, &remote, nullptr);
    const bool is_over = homecoming_ != nullptr && client::is_loss(posted);  // nobody has granted it any more
    if (status == OFFPATH_OK && !is_over) status = posted;
  }
  for (const uint64_t question : questions) {
    offpath_status_t its = OFFPATH_IN_PROGRESS;
    wait_until("unlock", [&] { return (its = homecoming_->answer_to(question)) != OFFPATH_IN_PROGRESS; });
    if (status == OFFPATH_OK) status = its;
  }
  return code_of(status);
}

// Regions without bytes are nothing to the service, but MPI lets a program attach them, and detach them again.
int OffloadedWindow::attach(void* base, uint64_t bytes) {
  if (bytes == 0) {
    std::lock_guard lock(mutex_);
    attached_empty_.push_back(base);
    return MPI_SUCCESS;
  }
  if (homecoming_ == nullptr) return code_of(offpath_window_attach(data_, base, bytes));
  if (!homecoming_->attach(base, bytes)) return code_of(OFFPATH_ERR_ARGUMENT);
  const offpath_status_t status = homecoming_->has_turned() ? OFFPATH_OK : offpath_window_attach(data_, base, bytes);
  if (status == OFFPATH_OK || client::is_loss(status)) return MPI_SUCCESS;
  homecoming_->detach(base);
  return code_of(status);
}

int OffloadedWindow::detach(void* base) {
  const int code = detach_region(base);
  if (code != MPI_ERR_ARG) return code;
  std::lock_guard lock(mutex_);
  const auto empty = std::find(attached_empty_.begin(), attached_empty_.end(), base);
  if (empty == attached_empty_.end()) return code;
  attached_empty_.erase(empty);
  return MPI_SUCCESS;
}

int OffloadedWindow::detach_region(void* base) {
  if (homecoming_ == nullptr) return code_of(offpath_window_detach(data_, base));
  if (!homecoming_->has_turned()) {
    const offpath_status_t status = offpath_window_detach(data_, base);
    // What it does not know any more it was told to let go of meanwhile.
    if (status != OFFPATH_OK && !client::is_loss(status) && !homecoming_->has_turned()) return code_of(status);
  }
  // The service may work on it until it has let go of all.
  if (homecoming_->has_turned()) wait_until("detach", [this] { return homecoming_->is_home(); });
  return homecoming_->detach(base) ? MPI_SUCCESS : code_of(OFFPATH_ERR_ARGUMENT);
}

}  // namespace offpath::mpi
