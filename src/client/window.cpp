// SPDX-License-Identifier: BSD-3-Clause
// Windows: opened and closed by the service while the caller waits, and their counters.
#include "base/result.hpp"
#include "client/session.hpp"
#include "remote/journal.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace layout = offpath::session;
using layout::OpKind;

layout::WindowRecord& offpath_window::shared() const { return *session->at<layout::WindowRecord>(record); }

uint64_t offpath_window::completed() const {
  if (all_over.load(std::memory_order_acquire)) return issued();
  const auto known = [this] {
    return shared().completed.load(std::memory_order_acquire) + counted.load(std::memory_order_acquire);
  };
  if (!any_ahead.load(std::memory_order_acquire)) return known();
  std::lock_guard lock(ahead_mutex);
  while (!ahead.empty() && *ahead.begin() <= known()) {
    ahead.erase(ahead.begin());
    counted.fetch_add(1, std::memory_order_acq_rel);
  }
  any_ahead.store(!ahead.empty(), std::memory_order_release);
  return known();
}

// Others that were posted before may be under way.
void offpath_window::drop(uint64_t sequence) {
  std::lock_guard lock(ahead_mutex);
  ahead.insert(sequence);
  any_ahead.store(true, std::memory_order_release);
  ++dropped;
}

void offpath_session::release_window(offpath_window* window) {
  arena.release(window->record, sizeof(layout::WindowRecord));
  if (window->journal != 0) arena.release(window->journal, offpath::remote::journal_bytes(window->team->size));
  std::erase_if(windows, [&](const auto& owned) { return owned.get() == window; });
}

namespace {

constexpr uint64_t kForever = UINT64_MAX;

// Has the service do something with the window, and waits until it has.
offpath_status_t command(offpath_window& window, OpKind kind, const char* name, uint64_t address = 0,
                         uint64_t bytes = 0) {
  offpath_session& session = *window.session;
  if (!session.life.check()) return OFFPATH_ERR_SERVICE_LOST;
  auto op = std::make_unique<offpath_op>(*window.team, kind, name);
  op->window = &window;
  op->address = address;
  op->bytes = bytes;
  offpath_op* posted = nullptr;
  {
    const bool opens = kind == OpKind::window_open;
    const uint64_t base = opens ? window.shared().base : address, length = opens ? window.shared().bytes : bytes;
    std::lock_guard lock(session.mutex);
    session.use_memory({{{base, base + length}}, {}}, false);
    if (const offpath_status_t status = session.post(std::move(op), &posted); status != OFFPATH_OK) return status;
  }
  const offpath_status_t status = offpath_op_wait(posted, kForever);
  offpath_op_free(posted);
  return status == OFFPATH_ERR_NOT_STARTED ? OFFPATH_ERR_SERVICE_LOST : status;
}

Status create(offpath_team& team, const offpath_window_params_t& params, offpath_window** out) {
  const bool dynamic = (params.flags & OFFPATH_WINDOW_DYNAMIC) != 0;
  const uint32_t keeping = offpath::client::keeping_flag();
  if (params.struct_bytes != sizeof(params) || (params.flags & ~(OFFPATH_WINDOW_DYNAMIC | keeping)) != 0 ||
      (params.base == nullptr && params.bytes > 0) || (dynamic && params.bytes > 0)) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "offpath_window_create: flags %u with %llu bytes at %p are impossible",
                         params.flags, static_cast<unsigned long long>(params.bytes), params.base);
  }
  offpath_session& session = *team.session;
  if (!session.mine()) return Status::error(OFFPATH_ERR_STATE, "the session belongs to the parent process");
  auto owned = std::make_unique<offpath_window>();
  offpath_window* window = owned.get();
  window->session = &session;
  window->team = &team;
  const auto base = reinterpret_cast<uint64_t>(params.base);
  window->memory = offpath::client::moved::Keep(dynamic ? offpath::client::moved::Extent{0, UINT64_MAX}
                                                        : offpath::client::moved::Extent{base, base + params.bytes});
  {
    std::lock_guard lock(session.mutex);
    window->record = session.arena.allocate(sizeof(layout::WindowRecord));
    if (window->record == 0) return Status::error(OFFPATH_ERR_NO_MEMORY, "no room in the session segment for a window");
    window->keeps = (params.flags & keeping) != 0;
    // Without room for it what is atomic is lost with a service.
    const bool has_memory = params.bytes > 0 || dynamic;
    if (window->keeps && has_memory)
      window->journal = session.arena.allocate(offpath::remote::journal_bytes(team.size));
    session.windows.push_back(std::move(owned));
  }
  layout::WindowRecord& record = window->shared();
  record.id = params.id;
  record.base = base;
  record.bytes = params.bytes;
  record.flags = (dynamic ? layout::kDynamicWindow : 0) | (window->keeps ? layout::kKeptWindow : 0);
  record.journal = window->journal;
  record.journal_bytes = window->journal == 0 ? 0 : offpath::remote::journal_bytes(team.size);
  if (window->journal != 0) memset(session.at<uint8_t>(window->journal), 0, sizeof(uint64_t));
  record.issued.store(0, std::memory_order_relaxed);
  record.completed.store(0, std::memory_order_relaxed);
  record.failure.store(0, std::memory_order_relaxed);
  const offpath_status_t status = command(*window, OpKind::window_open, "opening of a window");
  if (status == OFFPATH_OK) {
    *out = window;
    return {};
  }
  std::lock_guard lock(session.mutex);
  session.release_window(window);
  return Status::error(status, "window %llu of %llu bytes could not be opened: %s",
                       static_cast<unsigned long long>(params.id), static_cast<unsigned long long>(params.bytes),
                       offpath_status_string(status));
}

// Moves on what only the client can: operations that wait for room, and the end of those of a lost service.
void advance(offpath_session& session) {
  if (!session.mine()) return;
  std::lock_guard lock(session.mutex);
  session.ring_late();
  session.reap_unclaimed();
  session.drain_queue();
}

offpath_status_t flush_test(offpath_window& window, uint64_t issued) {
  const auto is_complete = [&] { return window.completed() >= issued; };
  if (!window.session->mine()) return OFFPATH_ERR_STATE;
  if (!is_complete()) {
    ErrnoGuard guard;
    if (++window.test_count % 1024 == 0) window.session->life.check();
    advance(*window.session);
    const bool lost = window.session->life.lost;
    if (lost && window.keeps) {
      std::lock_guard lock(window.session->mutex);
      window.session->settle_all(window);
    }
    if (!is_complete()) return lost ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_IN_PROGRESS;
  }
  layout::Atomic32& failure = window.shared().failure;
  if (failure.load(std::memory_order_acquire) == 0) return OFFPATH_OK;
  if (!window.keeps) return offpath::base::known_code(static_cast<int32_t>(failure.exchange(0)));
  std::lock_guard lock(window.session->mutex);
  window.session->settle_all(window);
  return std::exchange(window.failed, OFFPATH_OK);
}

}  // namespace

extern "C" {

offpath_status_t offpath_window_create(offpath_team_t* team, const offpath_window_params_t* params,
                                       offpath_window_t** window, offpath_error_t* error) {
  ErrnoGuard guard;
  if (team == nullptr || params == nullptr || window == nullptr) return OFFPATH_ERR_ARGUMENT;
  *window = nullptr;
  const Status status = create(*team, *params, window);
  status.copy_to(error);
  return status.code();
}

void offpath_window_destroy(offpath_window_t* window) {
  if (window == nullptr || !window->session->mine()) return;
  ErrnoGuard guard;
  offpath_session& session = *window->session;
  command(*window, OpKind::window_close, "closing of a window");
  std::lock_guard lock(session.mutex);
  session.reap_unclaimed();
  window->destroyed = true;
  if (window->unfinished == 0) session.release_window(window);
}

offpath_status_t offpath_window_attach(offpath_window_t* window, void* base, uint64_t bytes) {
  if (window == nullptr || base == nullptr || bytes == 0) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  if (!window->session->mine()) return OFFPATH_ERR_STATE;
  return command(*window, OpKind::window_attach, "attaching of memory", reinterpret_cast<uint64_t>(base), bytes);
}

offpath_status_t offpath_window_detach(offpath_window_t* window, void* base) {
  if (window == nullptr || base == nullptr) return OFFPATH_ERR_ARGUMENT;
  ErrnoGuard guard;
  if (!window->session->mine()) return OFFPATH_ERR_STATE;
  return command(*window, OpKind::window_detach, "detaching of memory", reinterpret_cast<uint64_t>(base));
}

uint64_t offpath_window_issued(const offpath_window_t* window) { return window->issued(); }

uint64_t offpath_window_completed(const offpath_window_t* window) {
  const uint64_t completed = window->completed();
  const bool waits_for_room = window->submitted + window->dropped < window->issued();
  if (!waits_for_room) return completed;
  ErrnoGuard guard;
  advance(*window->session);
  return window->completed();
}

offpath_status_t offpath_window_flush_test(offpath_window_t* window) { return flush_test(*window, window->issued()); }

offpath_status_t offpath_window_flush(offpath_window_t* window, uint64_t timeout_ns) {
  using Clock = std::chrono::steady_clock;
  const uint64_t issued = window->issued();
  const auto start = Clock::now();
  while (true) {
    const uint32_t seen = offpath_session_events(window->session);
    const offpath_status_t status = flush_test(*window, issued);
    if (status != OFFPATH_IN_PROGRESS) return status;
    const auto passed = static_cast<uint64_t>((Clock::now() - start).count());
    if (passed >= timeout_ns) return OFFPATH_IN_PROGRESS;
    offpath_session_sleep(window->session, seen, std::min<uint64_t>(timeout_ns - passed, 100000000));
  }
}

}  // extern "C"
