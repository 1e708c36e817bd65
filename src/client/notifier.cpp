// SPDX-License-Identifier: BSD-3-Clause
#include "client/notifier.hpp"

#include "base/fd.hpp"
#include "base/quiet_thread.hpp"
#include "base/result.hpp"
#include "client/session.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

namespace offpath::client {

namespace {
constexpr uint64_t kNapNs = 1000000000;  // then it looks whether the service lives
}

Notifier::~Notifier() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    more_.notify_all();
    session_.wake_sleepers();
  }
  if (thread_.joinable()) thread_.join();
  for (const Entry& entry : std::exchange(entries_, {})) tell(entry, OFFPATH_ERR_STATE);
}

bool Notifier::start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = base::quiet_thread([this] { run(); });
  } catch (const std::exception&) {  // the system has no thread left
    return false;
  }
  return true;
}

offpath_status_t Notifier::add(offpath_op& op, offpath_op_told_t told, void* context) {
  uint64_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (!start()) return OFFPATH_ERR_NO_MEMORY;
    {
      std::lock_guard session_lock(session_.mutex);
      op.pins += 2;  // one for this function, which looks at it once more
    }
    number = next_++;
    entries_.push_back({&op, told, context, number});
    more_.notify_one();
  }
  // What has ended before it was in the list wakes nobody.
  if (const offpath_status_t status = offpath_op_test(&op); status != OFFPATH_IN_PROGRESS) {
    std::unique_lock lock(mutex_);
    const auto mine =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.number == number; });
    if (mine != entries_.end()) {
      const Entry entry = *mine;
      entries_.erase(mine);
      lock.unlock();
      tell(entry, status);
    }
  }
  std::lock_guard session_lock(session_.mutex);
  --op.pins;
  return OFFPATH_OK;
}

void Notifier::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (entries_.empty()) {
      more_.wait(lock);
      continue;
    }
    const uint32_t seen = offpath_session_events(&session_);
    if (tell_ended(lock) || stopping_) continue;
    lock.unlock();
    offpath_session_sleep(&session_, seen, kNapNs);
    lock.lock();
  }
}

bool Notifier::tell_ended(std::unique_lock<std::mutex>& lock) {
  std::vector<std::pair<Entry, offpath_status_t>> ended;
  std::erase_if(entries_, [&](const Entry& entry) {
    const offpath_status_t status = offpath_op_test(entry.op);
    if (status == OFFPATH_IN_PROGRESS) return false;
    ended.emplace_back(entry, status);
    return true;
  });
  lock.unlock();
  for (const auto& [entry, status] : ended) tell(entry, status);
  lock.lock();
  return !ended.empty();
}

void Notifier::tell(const Entry& entry, offpath_status_t status) {
  {
    std::lock_guard session_lock(session_.mutex);
    --entry.op->pins;
  }
  entry.told(entry.context, status);
}

}  // namespace offpath::client

extern "C" offpath_status_t offpath_op_notify(offpath_op_t* op, offpath_op_told_t told, void* context) {
  if (op == nullptr || told == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath::base::ErrnoGuard guard;
  offpath_session& session = *op->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  if (const offpath_status_t status = offpath_op_test(op); status != OFFPATH_IN_PROGRESS) {
    told(context, status);
    return OFFPATH_OK;
  }
  offpath::client::Notifier* notifier = nullptr;
  {
    std::lock_guard lock(session.mutex);
    if (session.notifier == nullptr) session.notifier = std::make_unique<offpath::client::Notifier>(session);
    notifier = session.notifier.get();
  }
  return notifier->add(*op, told, context);
}

extern "C" offpath_status_t offpath_op_fd(offpath_op_t* op, int* descriptor) {
  if (op == nullptr || descriptor == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath::base::ErrnoGuard guard;
  offpath::base::Fd theirs(eventfd(0, EFD_CLOEXEC));
  // One of our own: theirs may be closed, and its number be another file's, before the operation ends.
  offpath::base::Fd ours(fcntl(theirs.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!ours.valid()) return OFFPATH_ERR_NO_MEMORY;
  const auto ended = [](void* context, offpath_status_t) {
    const offpath::base::Fd fd(static_cast<int>(reinterpret_cast<intptr_t>(context)));
    eventfd_write(fd.get(), 1);
  };
  const offpath_status_t status = offpath_op_notify(op, ended, reinterpret_cast<void*>(intptr_t{ours.get()}));
  if (status != OFFPATH_OK) return status;
  ours.release();
  *descriptor = theirs.release();
  return OFFPATH_OK;
}
