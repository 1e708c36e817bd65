// SPDX-License-Identifier: BSD-3-Clause
#include "agent/mirror.hpp"

#include "base/clock.hpp"
#include "base/records.hpp"
#include "tasks/record.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace offpath::agent {

using base::Memfd;
using base::Result;
using base::Status;
using session::OpKind;
using session::SegmentHeader;
using session::Slot;
using session::SlotState;
using session::TeamRecord;
using session::WindowRecord;

namespace {
// Pages come when they are touched: more than there can be would end the service.
uint64_t room_for(uint64_t shared_bytes) {
  const uint64_t machine =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return std::min(shared_bytes, machine / 2) / session::kHeaderBytes * session::kHeaderBytes;
}
}  // namespace

Result<std::shared_ptr<Mirror>> Mirror::make(uint64_t shared_address, uint64_t shared_bytes) {
  uint64_t room = room_for(shared_bytes);
  auto memory = Memfd::create("offpath-mirror", session::kSegmentBytes + room);
  if (!memory.ok() && room > 0) memory = Memfd::create("offpath-mirror", session::kSegmentBytes + (room = 0));
  if (!memory.ok()) return memory.status();
  auto host = Memfd::create("offpath-mirrored", session::kSegmentBytes);
  if (!host.ok()) return host.status();
  std::shared_ptr<Mirror> mirror(new Mirror(std::move(memory.value()), std::move(host.value())));
  mirror->header().shared_address = shared_address;
  mirror->header().shared_bytes = room;
  return mirror;
}

Mirror::Mirror(Memfd memory, Memfd host) : memory_(std::move(memory)), host_(std::move(host)), data_(memory_.data()) {
  memory_.close_descriptor();  // there may be many clients
  host_.close_descriptor();
  session::describe_layout(header());
}

Slot& Mirror::slot(uint32_t index) const { return reinterpret_cast<Slot*>(data_ + session::kSlotsOffset)[index]; }

// ---- from the host --------------------------------------------------------------------------------------------------

Status Mirror::take(std::span<const uint8_t> body) {
  const auto index = agent::take_submission(body, [&](uint32_t offset, std::span<const uint8_t> bytes) {
    memcpy(data_ + offset, bytes.data(), bytes.size());
    memcpy(host_.data() + offset, bytes.data(), bytes.size());
  });
  if (!index.ok()) return index.status();
  SegmentHeader& head = header();
  const uint32_t position = head.submitted.load(std::memory_order_relaxed);
  auto* ring = reinterpret_cast<session::Atomic32*>(data_ + session::kRingOffset);
  ring[position % session::kSlotCount].store(index.value(), std::memory_order_relaxed);
  head.submitted.store(position + 1, std::memory_order_seq_cst);
  return {};
}

void Mirror::ask(uint32_t asked) { header().asked.store(asked, std::memory_order_seq_cst); }

// ---- to the host ----------------------------------------------------------------------------------------------------

void Mirror::follow(uint32_t index) {
  const Slot& entry = slot(index);
  if (std::find(slots_.begin(), slots_.end(), index) == slots_.end()) slots_.push_back(index);
  const auto inside = [](uint64_t offset, uint64_t bytes) {
    return offset >= session::kArenaOffset && offset <= session::kSegmentBytes &&
           bytes <= session::kSegmentBytes - offset;
  };
  const auto kind = static_cast<OpKind>(entry.kind);
  open_.erase(index);
  if (kind == OpKind::team_create && inside(entry.team, sizeof(TeamRecord)) && entry.team % 8 == 0) {
    const auto& record = *reinterpret_cast<const TeamRecord*>(data_ + entry.team);
    if (!inside(record.lost, record.size)) return;
    teams_[static_cast<uint32_t>(entry.team)] = {static_cast<uint32_t>(record.lost), record.size};
  }
  if (kind == OpKind::window_open && inside(entry.window, sizeof(WindowRecord)) && entry.window % 64 == 0)
    windows_.insert(static_cast<uint32_t>(entry.window));
  const auto team = teams_.find(static_cast<uint32_t>(entry.team));
  if (does(kind, session::kInSequence) && team != teams_.end() && entry.open % 4 == 0 &&
      inside(entry.open, uint64_t{team->second.size} * 4)) {
    open_[index] = {static_cast<uint32_t>(entry.open), team->second.size};
  }
  results_.erase(index);
  if (does(kind, session::kHasResult) && inside(entry.record, sizeof(tasks::ResultRecord)) && entry.record % 8 == 0)
    results_[index] = static_cast<uint32_t>(entry.record);
}

void Mirror::look(uint64_t offset, uint16_t bytes) {
  Word word{static_cast<uint32_t>(offset), bytes, How::store, load(data_, static_cast<uint32_t>(offset), bytes)};
  if (load(host_.data(), word.offset, bytes) == word.value) return;
  store(host_.data(), word);
  words_.push_back(word);
}

// What is written last is looked at last: whoever finds a slot done finds everything else as it is to be then.
void Mirror::look_at_slots() {
  for (const auto& [index, open] : open_) {
    for (uint32_t i = 0; i < open.count; ++i) look(open.offset + i * 4, 4);
  }
  for (const auto& [index, record] : results_) {
    if (slot(index).state.load(std::memory_order_relaxed) != static_cast<uint32_t>(SlotState::done)) continue;
    for (uint32_t i = 0; i < sizeof(tasks::ResultRecord); i += 8) look(record + i, 8);
  }
  for (size_t i = 0; i < sizeof(session::Counters); i += 8) look(offsetof(SegmentHeader, counters) + i, 8);
  for (size_t at = session::kCodedOffset; at < session::kCodedEnd; at += 8) look(at, 8);
  for (const uint32_t index : slots_) {
    const size_t at = session::kSlotsOffset + size_t{index} * sizeof(Slot);
    for (const size_t field : {offsetof(Slot, status), offsetof(Slot, steps_left), offsetof(Slot, exports_left),
                               offsetof(Slot, last_peer)}) {
      look(at + field, 4);
    }
    for (const size_t field : {offsetof(Slot, started_ns), offsetof(Slot, first_byte_ns), offsetof(Slot, done_ns)})
      look(at + field, 8);
  }
  for (const uint32_t index : slots_) look(session::kSlotsOffset + size_t{index} * sizeof(Slot), 4);
}

void Mirror::forget_done() {
  std::erase_if(slots_, [&](uint32_t index) {
    const Slot& entry = slot(index);
    if (entry.state.load(std::memory_order_relaxed) != static_cast<uint32_t>(SlotState::done)) return false;
    const auto kind = static_cast<OpKind>(entry.kind);
    if (kind == OpKind::team_destroy) teams_.erase(static_cast<uint32_t>(entry.team));
    if (kind == OpKind::window_close) windows_.erase(static_cast<uint32_t>(entry.window));
    open_.erase(index);
    results_.erase(index);
    return true;
  });
}

bool Mirror::is_urgent() const {
  constexpr uint32_t kAnswered = offsetof(SegmentHeader, answered);
  return header().events.load(std::memory_order_relaxed) != events_ ||
         load(data_, kAnswered, 4) != load(host_.data(), kAnswered, 4);
}

std::vector<uint8_t> Mirror::collect() {
  for (const auto& [at, team] : teams_) {
    const auto& record = *reinterpret_cast<const TeamRecord*>(data_ + at);
    const bool broken = record.broken.load(std::memory_order_relaxed) != 0;  // set with each loss
    for (uint32_t i = 0; broken && i < team.size; ++i) look(team.lost + i, 1);
    look(at + offsetof(TeamRecord, started), 8);
    look(at + offsetof(TeamRecord, broken), 4);
  }
  look_at_slots();
  for (const uint32_t at : windows_) {
    // The client takes it and sets it to 0; so does this mirror when it sends it.
    auto& failure = reinterpret_cast<WindowRecord*>(data_ + at)->failure;
    const uint32_t status = failure.exchange(0);
    if (status != 0)
      words_.push_back({static_cast<uint32_t>(at + offsetof(WindowRecord, failure)), 4, How::if_zero, status});
    look(at + offsetof(WindowRecord, completed), 8);
  }
  look(offsetof(SegmentHeader, answered), 4);
  look(offsetof(SegmentHeader, in_use), 4);
  const uint32_t events = header().events.load(std::memory_order_relaxed);
  const bool told = std::exchange(events_, events) != events;
  forget_done();
  std::vector<uint8_t> out;
  if (words_.empty() && !told) return out;
  base::RecordWriter writer(out);
  writer.write(WordsHead{base::clock_ns(), told ? 1U : 0U, static_cast<uint32_t>(words_.size())});
  writer.write_all(std::span<const Word>(words_));
  words_.clear();
  return out;
}

}  // namespace offpath::agent
