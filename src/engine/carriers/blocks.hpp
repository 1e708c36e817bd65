// SPDX-License-Identifier: BSD-3-Clause
// Blocks: all that a carrier sees of an engine: blocks that members of this worker give to others, and what becomes of them.
// The engine owns the blocks and implements this (engine/rooms/exports.hpp); a carrier names a block until it is told to forget it.
// Everything is called on the worker's thread, and nothing blocks. Lengths and addresses are in bytes. What a carrier cannot
// do it refuses with a Status, which is then the operation's.
#pragma once

#include "engine/blocks/block.hpp"
#include "engine/coding/compression.hpp"
#include "fabric/fabric.hpp"
#include "wire/message.hpp"

namespace offpath::engine {

// A block that is there.
struct Offer {
  Block block;
  const Location& source;  // null, if it is empty
  uint64_t bytes;
  bool asked;  // for, by its receiver, who takes as much; then there is a pull's id, and
  uint64_t pull_id;
  uint64_t granted;   // so many bytes may leave now
  uint32_t readable;  // codecs that he can read
  bool near;          // he is served by this service, and
  bool same_worker;   // by this worker
  bool interpreted;   // what is in it may be code or addresses
};

class Blocks {
 public:
  struct Limits {
    uint64_t chunk_bytes;
    uint32_t chunks_in_flight;  // of one block
    size_t batched_bytes;       // longest piece that shares a message of the fabric with others
  };

  Blocks(const Limits& its_limits, Compression& its_coding) : limits(its_limits), coding(its_coding) {}
  virtual ~Blocks() = default;

  // ---- how it may leave
  // Whole, as a copy, in one message that its receiver may not have asked for.
  virtual bool may_push(Block block, bool asked) const = 0;
  virtual wire::Message push_of(Block block) const = 0;
  // Of its receiver. UINT32_MAX: it cannot be reached, and that will end the operation.
  virtual fabric::Peer peer_of(Block block) = 0;
  virtual Compression::Plan plan_coding(const Offer& offer) const = 0;
  // To a receiver that is near: it may read `bytes` bytes there until it says done.
  virtual void offer_near(Block block, Location source, uint64_t bytes) = 0;

  // ---- what becomes of it
  // It is under way, in the hands of that carrier until this is told to forget it.
  virtual Carried& carry(Block block, Carrier& by) = 0;
  // It is read, to be pushed. It may be asked for meanwhile; then, and whether it was: nothing: it is not wanted as it is.
  virtual void begin_reading(Block block) = 0;
  virtual std::optional<bool> end_reading(Block block) = 0;
  // So many of its bytes leave the node.
  virtual void note_left(Block block, uint64_t bytes) = 0;
  virtual void note_coded(Block block, const Coded& coded) = 0;
  virtual void note_sampled(Block block, const codecs::Chooser::Sampled& sampled) = 0;
  // It was pushed: taken, as far as its operation is concerned.
  virtual void note_pushed(Block block, uint64_t bytes, bool asked) = 0;
  // An empty one that was asked for: its receiver is told so.
  virtual void end_empty(Block block) = 0;
  // It cannot leave. Its receiver is told.
  virtual void refuse(Block block, const base::Status& status) = 0;
  // It was not pushed after all: whoever has asked for it gets it in another way.
  virtual void give_otherwise(Block block) = 0;

  // ---- accesses to where it lies
  virtual memory::Ticket next_ticket() = 0;
  // Goes on with `then`, now or when the port has done it.
  template <typename Function>
  void when_done(Block block, const memory::Outcome& outcome, memory::Ticket ticket, Function&& then) {
    if (!outcome.is_later()) return then(block.operation, outcome.status());
    later(block, ticket.number, std::forward<Function>(then));
  }
  // The operation does not end before `then` was called; by Engine::on_sent, for a chunk that has this number.
  virtual void later(Block block, uint64_t ticket, Then then) = 0;

  const Limits limits;
  Compression& coding;
};

}  // namespace offpath::engine
