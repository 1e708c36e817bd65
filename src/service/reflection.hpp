// SPDX-License-Identifier: BSD-3-Clause
// Reflection: what a service writes into the mirror of a segment goes back to the client's host. The worker's end of a
// mirror; what it finds goes into the outbox of the agent's door.
#pragma once

#include "agent/mirror.hpp"
#include "service/outbox.hpp"

#include <memory>
#include <optional>

namespace offpath::service {

class Reflection {
 public:
  Reflection(std::shared_ptr<agent::Mirror> mirror, std::shared_ptr<Outbox> outbox, uint32_t client)
      : mirror_(std::move(mirror)), outbox_(std::move(outbox)), client_(client) {}

  void follow(uint32_t slot) { mirror_->follow(slot); }
  // After each round of work. What only a person looks at may wait: every message wakes the agent.
  void publish(uint64_t now_ns) {
    const bool is_time = now_ns - published_ns_ >= kLaterNs;
    owes_ = !is_time && !mirror_->is_urgent();
    if (owes_) return;
    published_ns_ = now_ns;
    auto words = mirror_->collect();
    if (!words.empty()) outbox_->put(wire::EntryKind::words, client_, std::move(words));
  }
  // Then it is to be called again within kLaterNs.
  bool owes() const { return owes_; }
  static constexpr uint64_t kLaterNs = 20000000;
  // The agent's number of the client, at the door with that outbox only.
  std::optional<uint32_t> number_at(const Outbox& door) const {
    return outbox_.get() == &door ? std::optional(client_) : std::nullopt;
  }

 private:
  const std::shared_ptr<agent::Mirror> mirror_;
  const std::shared_ptr<Outbox> outbox_;
  const uint32_t client_;
  uint64_t published_ns_ = 0;
  bool owes_ = false;
};

}  // namespace offpath::service
