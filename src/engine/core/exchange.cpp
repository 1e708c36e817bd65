// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/exchange.hpp"

namespace offpath::engine {

void Exchange::note_present(uint32_t member) {
  if (present_.empty()) present_.resize(members_);
  present_[member] = 1;
}

std::vector<wire::Message> Exchange::take_pulls(const OperationKey& operation) {
  std::vector<wire::Message> pulls;
  if (pulls_.empty()) return pulls;
  const auto [first, last] = pulls_.equal_range(operation);
  for (auto pull = first; pull != last; ++pull) pulls.push_back(pull->second);
  pulls_.erase(first, last);
  return pulls;
}

void Exchange::forget_calls_of(uint32_t member) {
  std::erase_if(pulls_, [&](const auto& entry) { return entry.first.is_request() && entry.first.peer == member; });
}

bool Exchange::may_push(uint32_t member) const {
  return is_present(member) && (pushed_count_.empty() || pushed_count_[member] < kMaxUnanswered);
}

void Exchange::note_pushed(const BlockKey& block) {
  if (pushed_.insert(block).second) ++count(pushed_count_, block.member);
}

bool Exchange::answer(const BlockKey& block) {
  if (pushed_.empty() || pushed_.erase(block) == 0) return false;
  --count(pushed_count_, block.member);
  return true;
}

bool Exchange::keep(const BlockKey& block, std::span<const uint8_t> bytes) {
  uint32_t& kept = count(kept_count_, block.member);
  if (kept >= kMaxUnanswered || !kept_.try_emplace(block, bytes.begin(), bytes.end()).second) return false;
  ++kept;
  return true;
}

std::optional<std::vector<uint8_t>> Exchange::take(const BlockKey& block) {
  auto found = kept_.extract(block);
  if (found.empty()) return std::nullopt;
  --count(kept_count_, block.member);
  return std::move(found.mapped());
}

uint32_t& Exchange::count(std::vector<uint32_t>& counts, uint32_t member) {
  if (counts.empty()) counts.resize(members_);
  return counts[member];
}

}  // namespace offpath::engine
