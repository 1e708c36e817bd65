// SPDX-License-Identifier: BSD-3-Clause
#include "service/served_client.hpp"

#include "base/log.hpp"
#include "ops/collectives/alltoall.hpp"

#include <algorithm>
#include <cstring>

namespace offpath::service {

using base::Status;
using session::OpKind;
using session::Slot;
using session::SlotState;

ServedClient::ServedClient(engine::ClientId id, base::Fd socket, session::SegmentView view,
                           const session::ServiceId& service)
    : id_(id), socket_(std::move(socket)), view_(std::move(view)), service_(service) {}

bool ServedClient::has_submission() const {
  if (view_.corrupt()) return false;
  const session::SegmentHeader& head = view_.header();
  return head.submitted.load(std::memory_order_seq_cst) != head.consumed.load(std::memory_order_relaxed);
}

bool ServedClient::take_submission(engine::Engine& engine) {
  const auto index = view_.take_submission();
  if (!index) return false;
  engine_ = &engine;
  Slot& slot = view_.slot(*index);
  if (slot.state.load(std::memory_order_acquire) != static_cast<uint32_t>(SlotState::posted)) return true;
  Status status;
  switch (static_cast<OpKind>(slot.kind)) {
    case OpKind::team_create:
      status = create_team(slot);
      view_.finish(*index, status.code(), false);
      break;
    case OpKind::team_destroy:
      if (const auto team = teams_.find(slot.team); team != teams_.end()) {
        engine.remove_team(team->second.handle);
        teams_.erase(team);
      }
      view_.finish(*index, OFFPATH_OK, false);
      break;
    case OpKind::alltoall:
    case OpKind::alltoallv:
      status = post_operation(*index, slot);
      if (!status.ok()) view_.finish(*index, status.code());
      break;
    default:
      status = Status::error(OFFPATH_ERR_ARGUMENT, "unknown operation kind %u", slot.kind);
      view_.finish(*index, status.code());
  }
  if (!status.ok())
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), status.text());
  return true;
}

Status ServedClient::create_team(const Slot& slot) {
  auto arguments = view_.team_arguments(slot.team);
  if (!arguments.ok()) return arguments.status();
  engine::TeamSpec spec;
  std::copy_n(arguments->id, spec.id.bytes.size(), spec.id.bytes.begin());
  spec.rank = arguments->rank;
  spec.client = id_;
  spec.context = slot.team;
  for (uint32_t rank = 0; rank < arguments->size; ++rank) {
    const auto bytes =
        std::span(arguments->addresses).subspan(size_t{rank} * arguments->address_stride, arguments->address_stride);
    auto address = session::MemberAddress::decode(bytes);
    if (!address.ok()) return address.status();
    spec.members.push_back({address->service == service_, address->worker, std::move(address->fabric)});
  }
  const auto handle = engine_->add_team(std::move(spec));
  if (!handle.ok()) return handle.status();
  teams_[slot.team] = {handle.value(), arguments->rank, arguments->size, 0};
  return {};
}

Status ServedClient::post_operation(uint32_t index, const Slot& entry) {
  Slot& slot = view_.slot(index);
  const auto team = teams_.find(entry.team);
  if (team == teams_.end()) return Status::error(OFFPATH_ERR_ARGUMENT, "operation on an unknown team");
  auto& [handle, rank, size, next_sequence] = team->second;
  if (slot.sequence != next_sequence) return Status::error(OFFPATH_ERR_ARGUMENT, "operations are out of order");
  auto arguments = view_.op_arguments(slot, size);
  if (!arguments.ok()) return arguments.status();
  if (view_.bytes_at(slot.progress, size) == nullptr) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "progress bytes lie outside the segment");
  }
  const bool copy_own = (arguments->flags & session::kOwnBlockByClient) == 0;
  engine::Graph graph =
      arguments->kind == OpKind::alltoall
          ? ops::expand_alltoall({rank, size, arguments->send, arguments->recv, arguments->block_bytes, copy_own})
          : ops::expand_alltoallv({rank, arguments->send, arguments->recv, arguments->send_bytes, arguments->recv_bytes,
                                   arguments->send_displs, arguments->recv_displs, copy_own});
  slot.pulls_left.store(static_cast<uint32_t>(graph.steps.size()), std::memory_order_relaxed);
  slot.exports_left.store(static_cast<uint32_t>(graph.exports.size()), std::memory_order_relaxed);
  // From here on the operation counts as begun, whatever happens to this process.
  view_.team_record(entry.team)->started.fetch_add(1, std::memory_order_relaxed);
  slot.state.store(static_cast<uint32_t>(SlotState::active), std::memory_order_release);
  ++next_sequence;
  engine_->post(handle, arguments->sequence, std::move(graph), index);
  return {};
}

void ServedClient::mark_progress(uint64_t slot, uint32_t peer, uint8_t bit) {
  if (uint8_t* byte = view_.bytes_at(view_.slot(static_cast<uint32_t>(slot)).progress + peer, 1)) {
    *byte = static_cast<uint8_t>(*byte | bit);
  }
}

void ServedClient::on_pulled(uint64_t slot, uint32_t peer, uint64_t bytes, bool local) {
  view_.slot(static_cast<uint32_t>(slot)).pulls_left.fetch_sub(1, std::memory_order_relaxed);
  mark_progress(slot, peer, session::kPulled);
  auto& counters = view_.header().counters;
  (local ? counters.local_bytes : counters.pulled_bytes).fetch_add(bytes, std::memory_order_relaxed);
}

void ServedClient::on_served(uint64_t slot, uint32_t peer, uint64_t bytes, bool local) {
  view_.slot(static_cast<uint32_t>(slot)).exports_left.fetch_sub(1, std::memory_order_relaxed);
  mark_progress(slot, peer, session::kServed);
  if (!local) view_.header().counters.served_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void ServedClient::on_finished(uint64_t slot, const Status& status) {
  if (!status.ok())
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), status.text());
  view_.finish(static_cast<uint32_t>(slot), status.code());
}

void ServedClient::on_member_lost(uint64_t team_record, uint32_t rank) {
  session::TeamRecord* record = view_.team_record(team_record);
  if (record == nullptr) return;
  if (uint8_t* lost = view_.bytes_at(record->lost + rank, 1)) *lost = 1;
  record->broken.store(1, std::memory_order_release);
  view_.wake();
}

}  // namespace offpath::service
