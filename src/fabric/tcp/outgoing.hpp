// SPDX-License-Identifier: BSD-3-Clause
// Outgoing: what is to leave on one lane, in order. Several frames leave with one system call, payloads from where
// they lie unless they have a tag. It outlives the attempts to connect: nothing is lost with a connection that makes
// way for another.
#pragma once

#include "fabric/tcp/frame.hpp"

#include <deque>
#include <vector>

namespace offpath::fabric::tcp {

class Outgoing {
 public:
  enum class Progress {
    empty,  // all is handed to the kernel
    full,   // the kernel takes no more for now
    broken  // it will never
  };

  // `context` is reported when there is a payload, which has a tag unless that is said.
  void add(FrameKind kind, Bytes header, Bytes payload, uint64_t context, bool tagged = true);
  bool empty() const { return items_.empty(); }
  uint64_t bytes() const { return bytes_ - written_; }  // that wait
  // Writes what the socket takes. `sent`: contexts of payloads that are their owners' again.
  Progress write(int socket, Sealer& sealer, std::vector<uint64_t>& sent);
  // Nothing leaves any more; contexts of the payloads that have not.
  std::vector<uint64_t> give_up();

 private:
  struct Item {
    std::array<uint8_t, kPrefixBytes> prefix;
    bool sealed = false, tagged = true;
    Bytes payload;
    uint64_t context = 0;
    std::vector<uint8_t> copy;  // of the payload, sealed, with its tag; perhaps longer
    Bytes tail() const { return copy.empty() ? payload : Bytes(copy).first(payload.size() + kTagBytes); }
    size_t bytes() const { return kPrefixBytes + tail().size(); }
  };
  void seal(Item& item, Sealer& sealer);
  void advance(size_t bytes, std::vector<uint64_t>& sent);

  std::deque<Item> items_;
  std::vector<std::vector<uint8_t>> spare_;  // memory for copies: made once, as the kernel clears each page of it
  size_t written_ = 0;                       // of the first
  uint64_t bytes_ = 0;                       // of all
};

}  // namespace offpath::fabric::tcp
