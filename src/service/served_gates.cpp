// SPDX-License-Identifier: BSD-3-Clause
// Gates: operations of a team that come after tasks or other operations. What is posted on the team behind a gate waits, so
// that operations of a team still begin as they were posted.
#include "base/log.hpp"
#include "service/served_client.hpp"

namespace offpath::service {

using base::Status;
using session::OpKind;
using session::Slot;
using tasks::Order;

// 0: of none. What closes a team or a window comes after what was posted there.
uint64_t ServedClient::ordered_by(OpKind kind, const Slot& slot) const {
  if (kind == OpKind::remote || kind == OpKind::window_close) {
    const auto window = windows_.find(slot.window);
    return window == windows_.end() ? 0 : window->second.team;
  }
  return does(kind, session::kInSequence) || kind == OpKind::team_destroy ? slot.team : 0;
}

bool ServedClient::hold(OpKind kind, uint32_t index) {
  const Slot& slot = view_.slot(index);
  if (kind != OpKind::gate) return gates_.any() && gates_.hold(ordered_by(kind, slot), kind, index);
  const uint64_t team = slot.team;  // the client may change it
  if (!teams_.contains(team)) return false;
  const auto after = tasks::decode_gate(view_.record(slot));
  Status status = after.status();
  if (status.ok() && order_.is_under_way(index))
    status = Status::error(OFFPATH_ERR_ARGUMENT, "the slot of a gate is used twice");
  Order::Verdict verdict = Order::Verdict::nonsense;
  if (status.ok()) verdict = order_.begin(index, after.value(), {}).verdict;
  if (status.ok() && verdict == Order::Verdict::nonsense) {
    note_end(index, false);
    status = Status::error(OFFPATH_ERR_ARGUMENT, "a gate waits for an operation that is none");
  }
  if (!status.ok()) {
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), status.text());
    finish(index, status.code(), session::Counted::no);
    return true;
  }
  if (gates_.add(team, index, verdict)) begin_held(team);
  return true;
}

bool ServedClient::begin_released() {
  bool any = false;
  while (const auto team = gates_.take_opened()) {
    begin_held(*team);
    any = true;
  }
  return any;
}

void ServedClient::begin_held(uint64_t team) {
  while (const auto held = gates_.next(team)) {  // one of them may destroy it
    if (held->kind != OpKind::gate) {
      begin(held->kind, held->slot);
    } else {
      finish(held->slot, OFFPATH_OK, session::Counted::no);
      note_end(held->slot, true);
    }
  }
}

Status ServedClient::take_spoilt(uint64_t team) {
  if (!gates_.any() || !gates_.take_spoilt(team)) return {};
  return Status::error(OFFPATH_ERR_DEPENDENCE, "an operation that this one comes after has failed");
}

}  // namespace offpath::service
