// SPDX-License-Identifier: BSD-3-Clause
// Chains: in which order the nodes of a task send, so that receivers hear few at a time. Those that have something to
// send are chains of equal length; the first of each begins, and a node that has sent passes a token to the next. Equal
// on all nodes. Pure.
#pragma once

#include "multicast/shape.hpp"

#include <algorithm>

namespace offpath::multicast {

class Chains {
 public:
  static constexpr uint32_t kAllAtOnce = 16;

  // As many as wanted, or one, where that many would differ in length. 0: all senders at once, if they are few, so that each
  // receives all the time; else two.
  Chains(const Shape& shape, uint32_t wanted) : nodes_(shape.nodes()) {
    for (uint32_t node = 0; node < shape.nodes(); ++node) {
      if (shape.part(node).count > 0) senders_.push_back(node);
    }
    const auto count = static_cast<uint32_t>(senders_.size());
    if (wanted == 0) wanted = count <= kAllAtOnce ? count : 2;
    const uint32_t chains = wanted > 0 && count >= wanted && count % wanted == 0 ? wanted : 1;
    length_ = count / chains;
  }

  uint32_t count() const { return senders_.empty() ? 0 : static_cast<uint32_t>(senders_.size()) / length_; }
  // How many senders a node hears at the same time, at most. Nobody hears himself.
  uint32_t heard() const { return std::max(1U, length_ == 1 && senders_.size() == nodes_ ? count() - 1 : count()); }
  // The last senders of chains but for `own`: when the end of one is heard, those before it were heard. A node's own
  // end says nothing, as tokens overtake datagrams.
  std::vector<uint32_t> last_others(uint32_t own) const {
    std::vector<uint32_t> out;
    for (uint32_t end = length_; end != 0 && end <= senders_.size(); end += length_) {
      if (senders_[end - 1] != own) {
        out.push_back(senders_[end - 1]);
      } else if (length_ > 1) {
        out.push_back(senders_[end - 2]);
      }
    }
    return out;
  }
  bool sends(uint32_t node) const { return std::binary_search(senders_.begin(), senders_.end(), node); }
  bool begins(uint32_t node) const { return sends(node) && place(node) % length_ == 0; }
  // To whom that one passes the token.
  std::optional<uint32_t> next(uint32_t node) const {
    const uint32_t behind = place(node) + 1;
    return behind % length_ == 0 ? std::nullopt : std::optional(senders_[behind]);
  }

 private:
  uint32_t place(uint32_t node) const {
    return static_cast<uint32_t>(std::lower_bound(senders_.begin(), senders_.end(), node) - senders_.begin());
  }

  uint32_t nodes_;
  std::vector<uint32_t> senders_;
  uint32_t length_ = 0;
};

}  // namespace offpath::multicast
