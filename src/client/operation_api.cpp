// SPDX-License-Identifier: BSD-3-Clause
// The C API's operations: posting, testing, waiting.
#include "base/result.hpp"
#include "client/session.hpp"
#include "wire/message.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

using offpath::base::ErrnoGuard;
namespace layout = offpath::session;
using layout::OpKind;
using layout::Slot;
using layout::SlotState;

namespace {

std::unique_ptr<offpath_op> make_op(offpath_team_t* team, OpKind kind, const void* send, void* recv) {
  auto op = std::make_unique<offpath_op>();
  op->session = team->session;
  op->team = team;
  op->kind = kind;
  op->send = reinterpret_cast<uint64_t>(send);
  op->recv = reinterpret_cast<uint64_t>(recv);
  return op;
}

// On shared cores the caller's memcpy is cheaper than the service's two system calls; in place there is no own block.
void arrange_own_block(offpath_op& op, const uint8_t* source, uint8_t* target, size_t bytes) {
  if ((op.session->service.flags & layout::kServiceSharesCores) == 0) return;
  op.flags |= layout::kOwnBlockByClient;
  op.own_source = source;
  op.own_target = target;
  op.own_bytes = bytes;
}

offpath_status_t post_locked(std::unique_ptr<offpath_op> op, offpath_op_t** out) {
  offpath_session& session = *op->session;
  std::lock_guard lock(session.mutex);
  return session.post(std::move(op), out);
}

}  // namespace

extern "C" {

offpath_status_t offpath_alltoall(offpath_team_t* team, const void* send, void* recv, uint64_t bytes_per_peer,
                                  offpath_op_t** out) {
  if (team == nullptr || out == nullptr || (bytes_per_peer > 0 && (recv == nullptr || send == nullptr))) {
    return OFFPATH_ERR_ARGUMENT;
  }
  ErrnoGuard guard;
  *out = nullptr;
  if (!team->session->mine()) return OFFPATH_ERR_STATE;
  if (bytes_per_peer > offpath::wire::kMaxBlockBytes) return OFFPATH_ERR_ARGUMENT;
  auto op = make_op(team, OpKind::alltoall, send, recv);
  op->block_bytes = bytes_per_peer;
  if (send == OFFPATH_IN_PLACE) {
    const size_t total = size_t{team->size} * bytes_per_peer;
    op->staging.reset(new (std::nothrow) uint8_t[total]);
    if (op->staging == nullptr) return OFFPATH_ERR_NO_MEMORY;
    memcpy(op->staging.get(), recv, total);
    op->send = reinterpret_cast<uint64_t>(op->staging.get());
    op->flags |= layout::kOwnBlockByClient;
  } else {
    const size_t own = size_t{team->rank} * bytes_per_peer;
    arrange_own_block(*op, static_cast<const uint8_t*>(send) + own, static_cast<uint8_t*>(recv) + own, bytes_per_peer);
  }
  return post_locked(std::move(op), out);
}

offpath_status_t offpath_alltoallv(offpath_team_t* team, const void* send, const uint64_t* send_bytes,
                                   const int64_t* send_displs_bytes, void* recv, const uint64_t* recv_bytes,
                                   const int64_t* recv_displs_bytes, offpath_op_t** out) {
  if (team == nullptr || out == nullptr || recv_bytes == nullptr || recv_displs_bytes == nullptr) {
    return OFFPATH_ERR_ARGUMENT;
  }
  const bool in_place = send == OFFPATH_IN_PLACE;
  if (!in_place && (send_bytes == nullptr || send_displs_bytes == nullptr)) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  *out = nullptr;
  if (!team->session->mine()) return OFFPATH_ERR_STATE;
  const size_t size = team->size;
  const auto too_long = [](uint64_t bytes) { return bytes > offpath::wire::kMaxBlockBytes; };
  if (std::any_of(recv_bytes, recv_bytes + size, too_long)) return OFFPATH_ERR_ARGUMENT;
  if (!in_place && std::any_of(send_bytes, send_bytes + size, too_long)) return OFFPATH_ERR_ARGUMENT;
  auto op = make_op(team, OpKind::alltoallv, send, recv);
  op->arrays.resize(4 * size);
  uint64_t* arrays = op->arrays.data();
  memcpy(arrays + 2 * size, recv_bytes, size * sizeof(uint64_t));
  memcpy(arrays + 3 * size, recv_displs_bytes, size * sizeof(int64_t));
  auto* target = static_cast<uint8_t*>(recv);
  if (in_place) {
    uint64_t total = 0;
    for (size_t i = 0; i < size; ++i) {
      arrays[i] = recv_bytes[i];
      arrays[size + i] = total;
      total += recv_bytes[i];
    }
    op->staging.reset(new (std::nothrow) uint8_t[total + 1]);
    if (op->staging == nullptr) return OFFPATH_ERR_NO_MEMORY;
    for (size_t i = 0; i < size; ++i) {
      if (recv_bytes[i] > 0) memcpy(&op->staging[arrays[size + i]], target + recv_displs_bytes[i], recv_bytes[i]);
    }
    op->send = reinterpret_cast<uint64_t>(op->staging.get());
    op->flags |= layout::kOwnBlockByClient;
  } else {
    memcpy(arrays, send_bytes, size * sizeof(uint64_t));
    memcpy(arrays + size, send_displs_bytes, size * sizeof(int64_t));
    const uint32_t rank = team->rank;
    if (send_bytes[rank] > recv_bytes[rank]) return OFFPATH_ERR_TRUNCATED;
    if (send_bytes[rank] > 0) {
      arrange_own_block(*op, static_cast<const uint8_t*>(send) + send_displs_bytes[rank],
                        target + recv_displs_bytes[rank], send_bytes[rank]);
    }
  }
  return post_locked(std::move(op), out);
}

offpath_status_t offpath_op_test(offpath_op_t* op) {
  offpath_session& session = *op->session;
  const auto known = static_cast<offpath_status_t>(op->status.load(std::memory_order_acquire));
  if (known != OFFPATH_IN_PROGRESS) return known;
  const uint32_t slot = op->slot;
  const bool done = slot != offpath_op::kQueued &&
                    session.slot(slot).state.load(std::memory_order_acquire) == static_cast<uint32_t>(SlotState::done);
  if (!session.mine()) return OFFPATH_ERR_STATE;
  ErrnoGuard guard;
  const bool queued = slot == offpath_op::kQueued;
  if (!done && !queued && !session.lost && ++op->test_count % 1024 != 0) return OFFPATH_IN_PROGRESS;
  if (!done) session.check_alive();
  std::lock_guard lock(session.mutex);
  if (queued) session.reap_orphans();
  const offpath_status_t status = session.settle(*op);
  session.drain_queue();
  return status;
}

offpath_status_t offpath_op_help(offpath_op_t* op) {
  const offpath_status_t status = offpath_op_test(op);
  if (status != OFFPATH_IN_PROGRESS) return status;
  std::lock_guard lock(op->session->mutex);
  op->copy_own_block();
  return OFFPATH_IN_PROGRESS;
}

offpath_status_t offpath_op_wait(offpath_op_t* op, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  offpath_session& session = *op->session;
  while (true) {
    const uint32_t seen = offpath_session_events(&session);
    const offpath_status_t status = offpath_op_help(op);
    if (status != OFFPATH_IN_PROGRESS) return status;
    const auto passed = static_cast<uint64_t>((Clock::now() - start).count());
    if (passed >= timeout_ns) return OFFPATH_IN_PROGRESS;
    offpath_session_sleep(&session, seen, std::min<uint64_t>(timeout_ns - passed, 100000000));
  }
}

void offpath_op_describe(offpath_op_t* op, char* text, size_t capacity) {
  ErrnoGuard guard;
  if (capacity == 0) return;
  if (!op->session->mine()) {
    snprintf(text, capacity, "an operation of the parent process");
    return;
  }
  std::lock_guard lock(op->session->mutex);
  const char* name = op->kind == OpKind::alltoall ? "alltoall" : "alltoallv";
  const auto sequence = static_cast<unsigned long long>(op->sequence);
  const auto status = static_cast<offpath_status_t>(op->status.load());
  if (status != OFFPATH_IN_PROGRESS || op->slot == offpath_op::kQueued) {
    snprintf(text, capacity, "%s #%llu: %s", name, sequence,
             status == OFFPATH_IN_PROGRESS ? "waits for a free operation slot" : offpath_status_string(status));
    return;
  }
  const Slot& entry = op->session->slot(op->slot);
  const auto* progress = op->session->at<uint8_t>(op->progress_offset);
  int used = snprintf(text, capacity, "%s #%llu: %u blocks to come, %u to give; waits for rank", name, sequence,
                      entry.pulls_left.load(), entry.exports_left.load());
  int named = 0;
  for (uint32_t rank = 0; rank < op->team->size && used > 0 && static_cast<size_t>(used) < capacity; ++rank) {
    const bool open = rank != op->team->rank && progress[rank] != (layout::kPulled | layout::kServed);
    if (!open) continue;
    if (++named > 8) {
      snprintf(text + used, capacity - static_cast<size_t>(used), " ...");
      return;
    }
    used += snprintf(text + used, capacity - static_cast<size_t>(used), " %u", rank);
  }
}

void offpath_op_free(offpath_op_t* op) {
  if (op == nullptr) return;
  ErrnoGuard guard;
  std::unique_ptr<offpath_op> owned(op);
  offpath_session& session = *op->session;
  if (!session.mine()) {
    owned.release();  // the child has a copy of the parent's object; leave it alone
    return;
  }
  std::lock_guard lock(session.mutex);
  if (session.settle(*op) == OFFPATH_IN_PROGRESS) {
    session.orphans.push_back(std::move(owned));
  }
  session.drain_queue();
}

}  // extern "C"
