// SPDX-License-Identifier: BSD-3-Clause
// Windows and one-sided operations of a served client.
#include "service/served_client.hpp"

namespace offpath::service {

using base::Status;
using session::Slot;
using session::WindowRecord;

namespace {
Status no_window() { return Status::error(OFFPATH_ERR_ARGUMENT, "operation on an unknown window"); }
}  // namespace

Status ServedClient::open_window(const Slot& slot) {
  const uint64_t offset = slot.window, team_record = slot.team;  // the client may change them
  const WindowRecord* record = view_.window_record(offset);
  const auto team = teams_.find(team_record);
  if (record == nullptr || team == teams_.end() || windows_.contains(offset)) {
    return Status::error(OFFPATH_ERR_ARGUMENT,
                         "window record is open already, lies outside the segment or has no team");
  }
  const uint64_t id = record->id;
  const bool dynamic = (record->flags & session::kDynamicWindow) != 0;
  const bool keeps = (record->flags & session::kKeptWindow) != 0;
  const Status status = here_->target.open(id_, team_record, id, record->base, record->bytes, dynamic,
                                           journal_for(*record, team->second.topology.size()), keeps);
  if (!status.ok()) return status;
  auto operations = std::make_shared<Operations>();
  operations->record = offset;
  windows_[offset] = {id, team_record, team->second.handle, team->second.topology.size(), std::move(operations)};
  return {};
}

// What lies on another machine is no use to the client when its DPU is lost.
std::shared_ptr<remote::Journal> ServedClient::journal_for(const WindowRecord& record, uint32_t members) const {
  const uint64_t at = record.journal, bytes = remote::journal_bytes(members);  // the client may change them
  if (reflection_ != nullptr || at == 0 || at % 8 != 0 || record.journal_bytes < bytes) return nullptr;
  uint8_t* const memory = view_.bytes_at(at, bytes);
  if (memory == nullptr) return nullptr;
  return std::make_shared<remote::Journal>(memory, members, view_.mapping());
}

Status ServedClient::change_window(session::OpKind kind, uint32_t index, const Slot& slot) {
  const auto found = windows_.find(slot.window);
  if (found == windows_.end()) return no_window();
  const uint64_t team = found->second.team, id = found->second.id;
  // It ends when nothing works on memory any more.
  const auto released = [this, index] { view_.finish(index, OFFPATH_OK, session::Counted::no); };
  if (kind == session::OpKind::window_give_up) return here_->target.give_up(id_, team, id, released);
  if (kind == session::OpKind::window_attach) return here_->target.attach(id_, team, id, slot.address, slot.bytes);
  if (kind == session::OpKind::window_detach) return here_->target.detach(id_, team, id, slot.address, released);
  windows_.erase(found);
  return here_->target.close(id_, team, id, released);
}

void ServedClient::close_windows_of(uint64_t team) {
  std::erase_if(windows_, [&](const auto& entry) {
    if (entry.second.team != team) return false;
    [[maybe_unused]] const Status status = here_->target.close(id_, team, entry.second.id, [] {});
    return true;
  });
}

Status ServedClient::begin_remote(uint32_t index, Slot& slot) {
  const auto found = windows_.find(slot.window);
  if (found == windows_.end()) return no_window();
  const ServedWindow& window = found->second;
  Remote& remote = remotes_[index];
  if (remote.operations != nullptr)
    return Status::error(OFFPATH_ERR_ARGUMENT, "the slot of an operation is used twice");
  if (slot.sequence != window.operations->count.begun()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "one-sided operations are out of order");
  }
  remote = {window.operations, window.operations->count.begin()};
  session::SegmentView::note_start(slot);
  const Status spoilt = take_spoilt(window.team);
  auto asked = ops::onesided::read(view_.record(slot), window.id, window.team_size);
  const uint64_t context = kRemoteContext | index;
  if (spoilt.ok() && asked.ok()) {
    here_->engine.post_request(window.handle, ops::onesided::make_request(std::move(asked.value())), context);
  } else {
    on_finished(context, spoilt.ok() ? asked.status() : spoilt);
  }
  return {};
}

void ServedClient::finish_remote(uint32_t index, const Status& status) {
  const Remote remote = std::exchange(remotes_[index], {});
  remote.operations->count.end(remote.number);
  // Looked up each time: the client may have moved it.
  WindowRecord* record = view_.window_record(remote.operations->record);
  uint32_t none = 0;
  if (record != nullptr && !status.ok())
    record->failure.compare_exchange_strong(none, static_cast<uint32_t>(status.code()));
  // Before it counts as completed, so that a client that has flushed finds the slots of all operations done.
  finish(index, status.code());
  if (record != nullptr) record->completed.store(remote.operations->count.completed(), std::memory_order_release);
}

}  // namespace offpath::service
