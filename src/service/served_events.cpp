// SPDX-License-Identifier: BSD-3-Clause
// What a client is told of its operations: how far they are, and how they have ended.
#include "service/served_client.hpp"

#include "base/log.hpp"

#include <bit>

namespace offpath::service {

using base::Status;
using session::Atomic32;
using session::Counted;
using session::Slot;

void ServedClient::count_down(Slot& slot, uint32_t peer) {
  slot.last_peer.store(peer, std::memory_order_relaxed);
  // Looked up each time: the client may have moved it.
  Atomic32* open = view_.counters_at(slot.open + uint64_t{peer} * sizeof(uint32_t), 1);
  if (open != nullptr) open->fetch_sub(1, std::memory_order_relaxed);
}

void ServedClient::on_first_byte(uint64_t context) {
  session::SegmentView::note_first_byte(view_.slot(static_cast<uint32_t>(context)));
}

void ServedClient::on_arrived(uint64_t context) {
  view_.slot(static_cast<uint32_t>(context))
      .state.store(static_cast<uint32_t>(session::SlotState::arrived), std::memory_order_release);
  if (reflection_ != nullptr) view_.tell();  // the host is to know soon, as others are told now
}

void ServedClient::on_step(uint64_t index, uint32_t peer, uint64_t bytes, bool local) {
  Slot& slot = view_.slot(static_cast<uint32_t>(index));
  slot.steps_left.fetch_sub(1, std::memory_order_relaxed);
  count_down(slot, peer);
  auto& counters = view_.header().counters;
  (local ? counters.local_bytes : counters.pulled_bytes).fetch_add(bytes, std::memory_order_relaxed);
}

void ServedClient::on_served(uint64_t index, uint32_t peer, uint64_t bytes, bool local) {
  Slot& slot = view_.slot(static_cast<uint32_t>(index));
  slot.exports_left.fetch_sub(1, std::memory_order_relaxed);
  count_down(slot, peer);
  if (!local) view_.header().counters.served_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void ServedClient::on_sampled(const codecs::Chooser::Sampled& sampled) {
  view_.header().sampled_bytes.fetch_add(sampled.bytes, std::memory_order_relaxed);
  view_.header().sampled_left_bytes.fetch_add(sampled.left, std::memory_order_relaxed);
}

void ServedClient::on_coded(const engine::Coded& coded) {
  session::SegmentHeader& head = view_.header();
  head.coded_bytes.fetch_add(coded.bytes, std::memory_order_relaxed);
  head.wire_bytes.fetch_add(coded.wire_bytes, std::memory_order_relaxed);
  head.saved_ns.fetch_add(static_cast<uint64_t>(static_cast<int64_t>(coded.saved_ns)), std::memory_order_relaxed);
  if (!coded.lossy) return;
  head.lossy_bytes.fetch_add(coded.bytes, std::memory_order_relaxed);
  // The bits of numbers that are not negative have their order.
  const auto error = std::bit_cast<uint64_t>(coded.largest_error);
  if (error > head.largest_error.load(std::memory_order_relaxed)) {
    head.largest_error.store(error, std::memory_order_relaxed);
  }
}

// Its slot may be used again from the end of this on.
void ServedClient::finish(uint32_t index, offpath_status_t status, Counted counted) {
  if (counted == Counted::yes) in_flight_.end(index, InFlight::now_ns());
  show_memory_use();
  view_.finish(index, status, counted);
  if (counted == Counted::yes) note_end(index, status == OFFPATH_OK);
}

void ServedClient::on_finished(uint64_t context, const Status& status) {
  if (!status.ok())
    base::log_write(base::LogLevel::warn, "client %llu: %s", static_cast<unsigned long long>(id_), status.text());
  const auto index = static_cast<uint32_t>(context);
  if ((context & kRemoteContext) != 0) return finish_remote(index, status);
  if ((context & ServedFiles::kContext) != 0) return files_->end(index, status);
  finish(index, status.code());
}

void ServedClient::on_member_lost(uint64_t team_record, uint32_t rank, engine::Loss how) {
  session::TeamRecord* record = view_.team_record(team_record);
  if (record == nullptr) return;
  if (uint8_t* lost = view_.bytes_at(record->lost + rank, 1)) *lost = static_cast<uint8_t>(how);
  record->broken.store(1, std::memory_order_release);
  view_.tell();
}

}  // namespace offpath::service
