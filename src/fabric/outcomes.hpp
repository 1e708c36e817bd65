// SPDX-License-Identifier: BSD-3-Clause
// What an endpoint has yet to tell its receiver: how sends and fetches have ended, and who is lost. It is told from progress(), never
// from inside another call.
#pragma once

#include "fabric/fabric.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace offpath::fabric {

class Outcomes {
 public:
  void sent(uint64_t context, bool success) { transfers_.push_back({false, context, success}); }
  void fetched(uint64_t context, bool success) { transfers_.push_back({true, context, success}); }
  void lost(Peer peer) { lost_.push_back(peer); }
  bool empty() const { return transfers_.empty() && lost_.empty(); }

  // Whether there was any. What the receiver does meanwhile may have outcomes of its own.
  bool report(Receiver& receiver) {
    bool any = false;
    while (!empty()) {
      any = true;
      for (const Transfer& each : std::exchange(transfers_, {})) {
        each.is_fetch ? receiver.on_fetched(each.context, each.success) : receiver.on_sent(each.context, each.success);
      }
      for (const Peer peer : std::exchange(lost_, {})) receiver.on_peer_lost(peer);
    }
    return any;
  }

 private:
  struct Transfer {
    bool is_fetch;
    uint64_t context;
    bool success;
  };
  std::vector<Transfer> transfers_;
  std::vector<Peer> lost_;
};

}  // namespace offpath::fabric
