// SPDX-License-Identifier: BSD-3-Clause
#include "client/kept.hpp"

#include "client/session.hpp"
#include "remote/journal.hpp"

#include <algorithm>
#include <utility>

using offpath::session::OpKind;

namespace {
constexpr uint32_t kKeeps = uint32_t{1} << 31;
}

void offpath_window::keep(offpath_op& op, bool may_be_done) {
  kept.push_back({op.sequence, may_be_done, std::move(op.record)});
  op.record.clear();
  may_have_kept.store(true, std::memory_order_release);
}

// Of those that the service has had it notes itself that some have failed, and how the first one. That may be a loss, so a window
// that keeps those looks at each.
void offpath_window::note_end(offpath_op& op, offpath_status_t status) {
  if (status == OFFPATH_OK) return;
  if (keeps && offpath::client::is_loss(status)) return keep(op, status != OFFPATH_ERR_NOT_STARTED);
  if (keeps && failed == OFFPATH_OK) failed = status;
  uint32_t none = 0;
  if (op.slot == offpath_op::kQueued) shared().failure.compare_exchange_strong(none, static_cast<uint32_t>(status));
}

// Each may end others' waiting in the queue, and takes itself out of the lists.
void offpath_session::settle_all(offpath_window& window) {
  for_each_posted([&](offpath_op& op) {
    if (op.window != &window || op.kind != OpKind::remote) return;
    const bool never_begins = op.slot == offpath_op::kQueued && (life.lost || window.given_up);
    if (never_begins) return finish(op, OFFPATH_ERR_NOT_STARTED);
    settle(op);
  });
  reap_unclaimed();
  if (life.lost) {
    window.may_have_kept.store(true, std::memory_order_release);
    window.all_over.store(true, std::memory_order_release);
  }
}

namespace offpath::client {

uint32_t keeping_flag() { return kKeeps; }

// What the service says of a failure comes before it counts the operation as completed.
bool may_have_kept(const offpath_window_t* window) {
  return window->may_have_kept.load(std::memory_order_acquire) || window->session->life.lost ||
         window->shared().failure.load(std::memory_order_acquire) != 0;
}

std::vector<Kept> take_kept(offpath_window_t* window) {
  offpath_session& session = *window->session;
  session.life.check();
  std::lock_guard lock(session.mutex);
  session.settle_all(*window);
  std::vector<Kept> kept = std::exchange(window->kept, {});
  std::sort(kept.begin(), kept.end(), [](const Kept& one, const Kept& other) { return one.sequence < other.sequence; });
  return kept;
}

offpath_status_t give_up(offpath_window_t* window, offpath_op_t** op) {
  *op = nullptr;
  offpath_session& session = *window->session;
  std::lock_guard lock(session.mutex);
  window->given_up = true;
  session.settle_all(*window);
  if (session.life.lost) return OFFPATH_ERR_SERVICE_LOST;
  auto owned = std::make_unique<offpath_op>(*window->team, OpKind::window_give_up, "giving up of a window");
  owned->window = window;
  return session.post(std::move(owned), op);
}

uint64_t sequence_of(const offpath_op_t* op) { return op->sequence; }

std::span<uint8_t> journal_of(const offpath_window_t* window) {
  const session::WindowRecord& record = window->shared();
  if (window->journal == 0) return {};
  return {window->session->at<uint8_t>(window->journal), record.journal_bytes};
}

}  // namespace offpath::client
