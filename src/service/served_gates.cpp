// SPDX-License-Identifier: BSD-3-Clause
// Gates: operations of a team that come after tasks or other operations. What is posted on the team behind a gate waits here, in
// its order, so that operations of a team still begin as they were posted.
#include "base/log.hpp"
#include "service/served_client.hpp"

#include <algorithm>
#include <utility>

namespace offpath::service {

using base::Status;
using session::OpKind;
using session::Slot;
using tasks::Order;

// Null: nothing holds it. What closes a team or a window comes after what was posted there.
ServedClient::ServedTeam* ServedClient::held_by(OpKind kind, const Slot& slot) {
  uint64_t record = slot.team;
  if (kind == OpKind::remote || kind == OpKind::window_close) {
    const auto window = windows_.find(slot.window);
    if (window == windows_.end()) return nullptr;
    record = window->second.team;
  } else if (!does(kind, session::kInSequence) && kind != OpKind::team_destroy && kind != OpKind::gate) {
    return nullptr;
  }
  const auto team = teams_.find(record);
  return team == teams_.end() ? nullptr : &team->second;
}

bool ServedClient::hold(OpKind kind, uint32_t index) {
  const Slot& slot = view_.slot(index);
  ServedTeam* const team = held_by(kind, slot);
  if (team == nullptr) return false;
  const auto last =
      std::find_if(team->held.rbegin(), team->held.rend(), [](const Held& held) { return held.kind == OpKind::gate; });
  if (kind != OpKind::gate) {
    if (team->held.empty()) return false;
    if (order_.is_under_way(index)) order_.note_after(index, last->slot);
    team->held.push_back({kind, index});
    is_held_[index] = true;
    return true;
  }
  const uint64_t record = slot.team;  // the client may change it
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
  if (last != team->held.rend()) order_.note_after(index, last->slot);
  team->held.push_back({kind, index, verdict});
  is_held_[index] = true;
  if (verdict == Order::Verdict::waits) gates_[index] = record;
  if (team->held.size() == 1) begin_held(record);
  return true;
}

// What it waits for has ended, in whatever the engine does just now: it is acted upon in the next round.
void ServedClient::open_gate(uint32_t index, bool well) {
  const auto gate = gates_.find(index);
  if (gate == gates_.end()) return;
  const uint64_t record = gate->second;
  gates_.erase(gate);
  const auto team = teams_.find(record);
  if (team == teams_.end()) return;
  for (Held& held : team->second.held) {
    if (held.kind == OpKind::gate && held.slot == index)
      held.verdict = well ? Order::Verdict::ready : Order::Verdict::fails;
  }
  released_.push_back(record);
}

bool ServedClient::begin_released() {
  const bool any = !released_.empty();
  while (!released_.empty()) {
    const uint64_t record = released_.back();
    released_.pop_back();
    begin_held(record);
  }
  return any;
}

void ServedClient::begin_held(uint64_t record) {
  while (true) {
    const auto team = teams_.find(record);  // each time: one of them may destroy it
    if (team == teams_.end() || team->second.held.empty()) return;
    const Held first = team->second.held.front();
    if (first.kind == OpKind::gate && first.verdict == Order::Verdict::waits) return;
    team->second.held.pop_front();
    is_held_[first.slot] = false;
    if (first.kind != OpKind::gate) {
      begin(first.kind, first.slot);
      continue;
    }
    if (first.verdict == Order::Verdict::fails) team->second.spoilt = true;
    finish(first.slot, OFFPATH_OK, session::Counted::no);
    note_end(first.slot, true);
  }
}

Status ServedClient::take_spoilt(uint64_t record) {
  const auto team = teams_.find(record);
  if (team == teams_.end() || !std::exchange(team->second.spoilt, false)) return {};
  return Status::error(OFFPATH_ERR_DEPENDENCE, "an operation that this one comes after has failed");
}

}  // namespace offpath::service
