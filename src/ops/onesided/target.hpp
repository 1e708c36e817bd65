// SPDX-License-Identifier: BSD-3-Clause
// The target's side of one-sided operations: which memory of its clients is open to whom, and what is done with it.
//
// Accumulates on one member's part of a window go through its lane, one after the other: short ones are done at once
// when the lane is free, long ones hold it until their graph has ended. So they are atomic with each other and those of
// one origin stay in order. Locks are queued in the order of arrival.
// Out-of-window access never touches memory, whatever a request says: every byte of the target's place (layout
// included) lies in one region of the window, or the answer is OFFPATH_ERR_RANGE.
//
// Threads: one worker's.
#pragma once

#include "engine/engine.hpp"
#include "ops/onesided/onesided.hpp"

#include <deque>
#include <map>

namespace offpath::ops::onesided {

class Target : public engine::Responder {
 public:
  explicit Target(engine::Engine& engine) : engine_(engine) {}

  // Windows of a client in one of its teams (its context). Errors: OFFPATH_ERR_ARGUMENT.
  base::Status open(engine::ClientId client, uint64_t team, uint64_t window, uint64_t base, uint64_t bytes, bool dynamic);
  void close(engine::ClientId client, uint64_t team, uint64_t window);
  base::Status attach(engine::ClientId client, uint64_t team, uint64_t window, uint64_t base, uint64_t bytes);
  base::Status detach(engine::ClientId client, uint64_t team, uint64_t window, uint64_t base);
  void remove_client(engine::ClientId client);
  // Locks that `rank` holds or waits for in that team end.
  void lose_member(engine::ClientId client, uint64_t team, uint32_t rank);

  engine::Answer on_request(engine::ClientId client, uint64_t team, uint32_t from, engine::RequestId request,
                            const std::shared_ptr<memory::Memory>& memory, fabric::Bytes body) override;
  void on_answered(engine::ClientId client, uint64_t team, engine::RequestId request,
                   const base::Status& status) override;

 private:
  engine::Engine& engine_;
};

}  // namespace offpath::ops::onesided
