// SPDX-License-Identifier: BSD-3-Clause
#include "agent/host_client.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace offpath::agent {

using session::OpKind;
using session::Slot;
using session::SlotState;

HostClient::HostClient(base::Fd socket, base::Fd alive, pid_t process, session::SegmentView view,
                       std::shared_ptr<memory::Aliases> aliases, std::shared_ptr<memory::Port> memory)
    : socket_(std::move(socket)),
      alive_(std::move(alive)),
      process_(process),
      view_(std::move(view)),
      aliases_(std::move(aliases)),
      open_(std::make_shared<OpenMemory>(view_)),
      memory_(guarded(std::move(memory), open_)),
      taken_ns_(session::kSlotCount) {}

bool HostClient::has_submission() const {
  if (view_.corrupt()) return false;
  const session::SegmentHeader& head = view_.header();
  return head.submitted.load(std::memory_order_seq_cst) != head.consumed.load(std::memory_order_relaxed) ||
         head.asked.load(std::memory_order_seq_cst) != asked_;
}

uint64_t HostClient::waited_ns() const { return view_.waited_ns(base::clock_ns()); }

bool HostClient::computes() const {
  const session::SegmentHeader& head = view_.header();
  return under_way_ > 0 && head.waiters.load(std::memory_order_relaxed) == 0 && head.waiting_since_ns.load() == 0;
}

std::optional<std::vector<uint8_t>> HostClient::take_submission() {
  const auto index = view_.take_submission();
  if (!index) return std::nullopt;
  if (const auto taken = view_.take_aliases()) {
    std::vector<memory::Alias> aliases;
    for (const session::AliasRecord& alias : *taken) aliases.push_back({alias.address, alias.bytes, alias.offset});
    aliases_->set(std::move(aliases));
  }
  auto body = submission_of(view_, *index);
  open_->begin(view_, *index);
  Slot& slot = view_.slot(*index);
  if (std::exchange(taken_ns_[*index], base::clock_ns()) == 0) ++under_way_;
  const auto kind = static_cast<OpKind>(slot.kind);  // the client may change it
  if (does(kind, session::kInSequence)) {
    const uint64_t sequence = slot.sequence;
    session::TeamRecord* team = view_.team_record(slot.team);
    if (team != nullptr && sequence < session::kMaxSequence)
      team->started.store(sequence + 1, std::memory_order_relaxed);
  }
  slot.state.store(static_cast<uint32_t>(SlotState::active), std::memory_order_release);
  return body;
}

std::optional<uint32_t> HostClient::take_question() {
  const uint32_t asked = header().asked.load(std::memory_order_seq_cst);
  if (asked == asked_) return std::nullopt;
  return asked_ = asked;
}

// ---- what the service has written -----------------------------------------------------------------------------------

// Never before the submission was taken, nor in the future, however well the clocks are known.
uint64_t HostClient::here(uint64_t service_ns, uint32_t slot) const {
  const uint64_t moved = service_ns - static_cast<uint64_t>(ahead_ns_);
  return std::clamp(moved, taken_ns_[slot], std::max(taken_ns_[slot], base::clock_ns()));
}

bool HostClient::take_words(std::span<const uint8_t> body) {
  WordsHead head;
  if (body.size() < sizeof(head)) return false;
  memcpy(&head, body.data(), sizeof(head));
  body = body.subspan(sizeof(head));
  if (head.count != body.size() / sizeof(Word) || body.size() % sizeof(Word) != 0) return false;
  // What came fastest tells most about the clocks.
  ahead_ns_ = std::max(ahead_ns_, static_cast<int64_t>(head.clock_ns) - static_cast<int64_t>(base::clock_ns()));
  auto* const segment = reinterpret_cast<uint8_t*>(&view_.header());
  for (uint32_t i = 0; i < head.count; ++i) {
    Word word;
    memcpy(&word, body.data() + i * sizeof(word), sizeof(word));
    if (!may_write(word)) return false;
    if (word.offset >= session::kSlotsOffset && word.offset < session::kAliasesOffset && word.value != 0) {
      const size_t at = word.offset - session::kSlotsOffset, field = at % sizeof(Slot);
      const bool is_time = field == offsetof(Slot, started_ns) || field == offsetof(Slot, first_byte_ns) ||
                           field == offsetof(Slot, done_ns);
      const auto slot = static_cast<uint32_t>(at / sizeof(Slot));
      if (is_time) word.value = here(word.value, slot);
      const bool ends = field == offsetof(Slot, state) && word.value == static_cast<uint32_t>(SlotState::done);
      if (ends) open_->end(slot);
      if (ends && std::exchange(taken_ns_[slot], 0) != 0) --under_way_;
    }
    store(segment, word);
  }
  view_.header().in_place_bytes.store(aliases_->in_place_bytes(), std::memory_order_relaxed);
  view_.header().copied_bytes.store(aliases_->copied_bytes(), std::memory_order_relaxed);
  if (head.told != 0) view_.tell();
  view_.wake();
  return true;
}

bool HostClient::answer(session::AttachReply reply) {
  is_answered_ = true;
  reply.process = reply.thread = getpid();      // whom the client ends if there is no answer; one thread serves all
  reply.flags |= session::kServiceSharesCores;  // own blocks are the client's: the link is longer than any copy here
  reply.flags |= session::kServiceIsFar;
  reply.text[sizeof(reply.text) - 1] = '\0';
  return session::send_message(socket_.get(), &reply, sizeof(reply)).ok();
}

bool HostClient::say(uint8_t word) { return session::send_message(socket_.get(), &word, 1).ok(); }

void HostClient::leave() {
  header().leaves.store(1, std::memory_order_release);
  view_.tell();
  view_.wake();
}

}  // namespace offpath::agent
