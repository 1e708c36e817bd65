// SPDX-License-Identifier: BSD-3-Clause
// Reflection: what a service writes into the mirror of a segment goes back to the client's host. The worker's end of a
// mirror; what it finds goes into the outbox of the agent's door.
#pragma once

#include "agent/mirror.hpp"
#include "service/outbox.hpp"

#include <memory>

namespace offpath::service {

class Reflection {
 public:
  Reflection(std::shared_ptr<agent::Mirror> mirror, std::shared_ptr<Outbox> outbox, uint32_t client)
      : mirror_(std::move(mirror)), outbox_(std::move(outbox)), client_(client) {}

  void follow(uint32_t slot) { mirror_->follow(slot); }
  void publish() {
    auto words = mirror_->collect();
    if (!words.empty()) outbox_->put(wire::EntryKind::words, client_, std::move(words));
  }

 private:
  const std::shared_ptr<agent::Mirror> mirror_;
  const std::shared_ptr<Outbox> outbox_;
  const uint32_t client_;
};

}  // namespace offpath::service
