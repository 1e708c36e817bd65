// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"
#include "client/described.hpp"
#include "client/session.hpp"

extern "C" offpath_status_t offpath_remote(offpath_window_t* window, const offpath_remote_t* remote,
                                           offpath_op_t** out) {
  if (window == nullptr || remote == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath::base::ErrnoGuard guard;
  if (out != nullptr) *out = nullptr;
  offpath_session& session = *window->session;
  if (!session.mine()) return OFFPATH_ERR_STATE;
  offpath::client::DescribedRemote described;
  const offpath_status_t checked = offpath::client::describe(*remote, window->team->size, described);
  if (checked != OFFPATH_OK) return checked;
  described.wanted.window = window->shared().id;
  offpath::client::moved::Named named;
  if (session.moved_memory != nullptr) named = offpath::client::moved::named_by(*remote);
  std::lock_guard lock(session.mutex);
  session.use_memory(std::move(named), session.has_gate(*window->team));
  auto op = out == nullptr ? session.take_op() : std::make_unique<offpath_op>();
  op->session = &session;
  op->team = window->team;
  op->window = window;
  op->kind = offpath::session::OpKind::remote;
  op->name = offpath::remote::name_of(remote->kind);
  op->target = remote->target;
  const bool is_short = !offpath::remote::locks(remote->kind) && remote->target_bytes <= OFFPATH_REMOTE_INLINE_BYTES;
  const bool flushed = out == nullptr || (remote->flags & OFFPATH_REMOTE_FLUSHED) != 0;
  op->lazy = flushed && is_short;
  if (offpath::remote::accumulates(remote->kind)) described.wanted.number = window->next_atomic(remote->target);
  encode(described.origin, described.wanted, described.data, op->record);
  return session.post(std::move(op), out);
}
