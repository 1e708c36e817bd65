// SPDX-License-Identifier: BSD-3-Clause
// Arming: how the nodes of a task agree on how to do it, along a binomial tree whose root is node 0. Each says once per round
// that it is armed and what it can; what its subtree says goes to its parent as one word, and the root's answer comes back
// the same way. Pure. docs/design/0022-multicast.md
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::multicast {

// What a node says, or a subtree.
struct Word {
  int32_t status = 0;        // offpath_status_t: why it cannot take part
  uint32_t chunk_bytes = 0;  // of its group; 0: it has none, or has not heard all others in it
  uint64_t digest = 0;       // of what it was told about the parts
  uint64_t rate = 0;         // bytes per second that its link takes; 0: unknown
  uint32_t lost = 0;         // chunks that it had to fetch since it was armed last,
  uint32_t of = 0;           // of so many
  uint32_t seals = 0;        // bits: how it can prove chunks,
  uint32_t codecs = 0;       // and what it can decode
  bool operator==(const Word&) const = default;
};

// What both can. Different digests: `mismatch`.
inline Word combine(const Word& a, const Word& b, int32_t mismatch) {
  const auto sum = [](uint32_t x, uint32_t y) { return x + std::min(y, UINT32_MAX - x); };
  const bool both = a.rate > 0 && b.rate > 0;
  Word out{a.status != 0 ? a.status : b.status,
           std::min(a.chunk_bytes, b.chunk_bytes),
           a.digest,
           both ? std::min(a.rate, b.rate) : std::max(a.rate, b.rate),
           sum(a.lost, b.lost),
           sum(a.of, b.of),
           a.seals & b.seals,
           a.codecs & b.codecs};
  if (out.status == 0 && a.digest != b.digest) out.status = mismatch;
  return out;
}

class Arming {
 public:
  Arming(uint32_t own, uint32_t nodes, int32_t mismatch)
      : own_(own), mismatch_(mismatch), words_(1 + children_of(own, nodes).size()) {
    children_ = children_of(own, nodes);
  }

  bool is_root() const { return own_ == 0; }
  uint32_t parent() const { return own_ & (own_ - 1); }
  const std::vector<uint32_t>& children() const { return children_; }

  // False: no child of this node, or it has said so in this round.
  bool arm(uint32_t node, const Word& word) {
    const auto found = std::find(children_.begin(), children_.end(), node);
    const auto index = node == own_ ? 0 : static_cast<size_t>(found - children_.begin()) + 1;
    if (index == words_.size() || words_[index]) return false;
    words_[index] = word;
    return true;
  }
  bool has(uint32_t child) const {
    const auto found = std::find(children_.begin(), children_.end(), child);
    return found == children_.end() || words_[static_cast<size_t>(found - children_.begin()) + 1].has_value();
  }
  // The word of the whole subtree, once per round: when all have said theirs.
  std::optional<Word> take() {
    const auto is_here = [](const auto& word) { return word.has_value(); };
    if (said_ || !std::all_of(words_.begin(), words_.end(), is_here)) return std::nullopt;
    said_ = true;
    Word out = *words_.front();
    for (size_t i = 1; i < words_.size(); ++i) out = combine(out, *words_[i], mismatch_);
    return out;
  }
  bool said() const { return said_; }
  void next_round() {
    std::fill(words_.begin(), words_.end(), std::nullopt);
    said_ = false;
  }

 private:
  static std::vector<uint32_t> children_of(uint32_t node, uint32_t nodes) {
    std::vector<uint32_t> out;
    const uint64_t below = node == 0 ? nodes : node & -node;
    for (uint64_t distance = 1; distance < below && node + distance < nodes; distance *= 2) {
      out.push_back(static_cast<uint32_t>(node + distance));
    }
    return out;
  }

  uint32_t own_;
  int32_t mismatch_;
  std::vector<uint32_t> children_;
  std::vector<std::optional<Word>> words_;  // the own one first
  bool said_ = false;
};

}  // namespace offpath::multicast
