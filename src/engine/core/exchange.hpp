// SPDX-License-Identifier: BSD-3-Clause
// Exchange: what is known of blocks between a member and the others while only one end of them is there: asked for before
// they were offered, sent before they were asked for. Of blocks whose operation is under way the operation knows the rest.
// Pure: no wires, no memory of users. Everything that others can make grow is bounded. Internal to engine/.
#pragma once

#include "wire/message.hpp"

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace offpath::engine {

// Finds an operation of a member, as it is named by those who ask for what it exports: by channel and number, in the
// channels of a pair by the other member, too.
struct OperationKey {
  wire::Channel channel = wire::Channel::collectives;
  uint64_t number = 0;
  uint32_t peer = 0;
  bool is_request() const { return channel != wire::Channel::collectives; }
  auto operator<=>(const OperationKey&) const = default;
};

// A short block of a collective between this member and another one.
struct BlockKey {
  uint64_t number = 0;
  uint32_t member = 0;
  uint32_t tag = 0;
  auto operator<=>(const BlockKey&) const = default;
};

class Exchange {
 public:
  // Short blocks that may lie unanswered at one member (docs/design/0013-push.md).
  static constexpr uint32_t kMaxUnanswered = 32;

  explicit Exchange(size_t members) : members_(members) {}

  // ---- members: one that something has come from has its end of the team
  void note_present(uint32_t member);
  bool is_present(uint32_t member) const { return !present_.empty() && present_[member] != 0; }

  // ---- pulls of operations that are to come
  size_t pulls_waiting() const { return pulls_.size(); }
  void ask(const OperationKey& operation, const wire::Message& pull) { pulls_.emplace(operation, pull); }
  std::vector<wire::Message> take_pulls(const OperationKey& operation);  // in the order in which they came
  void forget_calls_of(uint32_t member);
  void forget_pulls() { pulls_.clear(); }

  // ---- blocks of this member that nobody had asked for
  bool may_push(uint32_t member) const;
  void note_pushed(const BlockKey& block);
  // It was taken or has crossed a pull. False: it was not pushed, or answered before.
  bool answer(const BlockKey& block);
  const std::set<BlockKey>& unanswered() const { return pushed_; }

  // ---- blocks of others that this member has not asked for yet
  // False: too many of that member, or the same again.
  bool keep(const BlockKey& block, std::span<const uint8_t> bytes);
  std::optional<std::vector<uint8_t>> take(const BlockKey& block);
  // Of operations from..end-1, with `forgotten(block)` for each.
  template <typename Forgotten>
  void forget(uint64_t from, uint64_t end, Forgotten forgotten);
  // Calls `sent(member)` for each block that is there of an operation.
  template <typename Sent>
  void for_each_kept(uint64_t number, Sent sent) const;

 private:
  uint32_t& count(std::vector<uint32_t>& counts, uint32_t member);

  size_t members_;
  std::vector<uint8_t> present_;  // by member; empty: nobody
  std::multimap<OperationKey, wire::Message> pulls_;
  std::set<BlockKey> pushed_;
  std::map<BlockKey, std::vector<uint8_t>> kept_;
  std::vector<uint32_t> pushed_count_, kept_count_;  // of these, by member; empty: none so far
};

template <typename Forgotten>
void Exchange::forget(uint64_t from, uint64_t end, Forgotten forgotten) {
  auto block = kept_.lower_bound({from, 0, 0});
  while (block != kept_.end() && block->first.number < end) {
    --count(kept_count_, block->first.member);
    forgotten(block->first);
    block = kept_.erase(block);
  }
}

template <typename Sent>
void Exchange::for_each_kept(uint64_t number, Sent sent) const {
  for (auto block = kept_.lower_bound({number, 0, 0}); block != kept_.end() && block->first.number == number; ++block) {
    sent(block->first.member);
  }
}

}  // namespace offpath::engine
