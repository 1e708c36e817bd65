// SPDX-License-Identifier: BSD-3-Clause
// Observer: what the owner of an engine's clients learns. On the worker's thread; it must not call the engine back, but for
// Engine::answer().
#pragma once

#include "base/result.hpp"
#include "base/standing.hpp"
#include "graph/request.hpp"
#include "kernels/codecs/choice.hpp"

#include <cstdint>

namespace offpath::engine {

using base::Standing;
using base::Waits;
using graph::ClientId;

struct Coded;  // engine/coding/coder.hpp

// How a member was lost. 0 is none.
enum class Loss : uint8_t {
  service = 1,     // its service, or the way there
  silence = 2,     // its service, or the way there: no sign of life while something was awaited from it
  process = 3,     // itself
  connection = 4,  // told after `service`: that one lives, and is reached again
  host = 5         // its host, by the word of its service, which may live on: told as `service`
};

// What the owner of the clients learns. `team` and `operation` are the contexts it gave. Of requests it learns the end,
// and of long ones the first byte.
class Observer {
 public:
  virtual ~Observer() = default;
  // Once at most per operation, before any of its on_step that moved bytes: the first of its bytes has come here, or
  // begins to leave this node. Not for what goes inside a request or its answer.
  virtual void on_first_byte(ClientId, uint64_t /*operation*/) {}
  // Once per step: pulls with the peer they came from, copies and reductions with the own rank. Failed ones and those
  // left out moved 0 bytes.
  virtual void on_step(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  // Once per export that was taken; 0 bytes if it was refused.
  virtual void on_served(ClientId client, uint64_t operation, uint32_t peer, uint64_t bytes, bool local) = 0;
  // A chunk left compressed.
  virtual void on_coded(ClientId, const Coded&) {}
  // What compression would have left of a part of one (codecs::Wish::samples).
  virtual void on_sampled(ClientId, const codecs::Chooser::Sampled&) {}
  // Once at most, before on_finished: the result is complete, but others may not have theirs (graph::Ends).
  virtual void on_arrived(ClientId, uint64_t /*operation*/) {}
  virtual void on_finished(ClientId client, uint64_t operation, base::Status status) = 0;
  virtual void on_member_lost(ClientId client, uint64_t team, uint32_t rank, Loss how) = 0;
};

// Bytes of blocks so far.
struct Traffic {
  uint64_t sent_bytes = 0;  // over the fabric
  uint64_t received_bytes = 0;
  uint64_t local_bytes = 0;  // copied, reduced or computed on inside the node
  uint64_t coded_bytes = 0;  // of the bytes sent, those that went compressed
  uint64_t wire_bytes = 0;   // what they were then
  uint64_t lossy_bytes = 0;  // of the coded ones, those of which something was lost
};

}  // namespace offpath::engine
