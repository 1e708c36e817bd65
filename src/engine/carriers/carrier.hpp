// SPDX-License-Identifier: BSD-3-Clause
// Carrier: a way in which blocks of this worker's members get to where they are wanted. When a block is there, the carriers
// are asked in the order of carriers.def; the first that takes it moves it. A new way is a file here and a row there. Carriers
// see Blocks and Sender, never the engine, which owns them and calls them on the worker's thread; none of them blocks.
#pragma once

#include "engine/carriers/blocks.hpp"
#include "engine/carriers/sender.hpp"

#include <cstdint>
#include <memory>
#include <vector>

namespace offpath::engine {

class Carrier {
 public:
  virtual ~Carrier() = default;
  // True: it is taken care of; the carrier says what becomes of the block, unless it is told to forget it. What may not leave
  // at all is not offered.
  virtual bool take(const Offer& offer) = 0;
  // Moves a chunk of everything it has taken. False: there was nothing to be done.
  virtual bool move() { return false; }
  // So many bytes of a block that it carries may leave by now.
  virtual void allow(const Carried&, uint64_t /*bytes*/) {}
  // A block that it carries is taken, or its operation over: nothing more of it leaves.
  virtual void forget(Carried&) {}
  // A chunk that it sent has left; `transfer` is what it wrote into the chunk.
  virtual void on_sent(uint64_t /*transfer*/) {}
  // Of what it has taken: bytes still to be sent over the fabric that may leave by now.
  virtual uint64_t bytes_left() const { return 0; }
};

#define OFFPATH_CARRIER(name) std::unique_ptr<Carrier> make_##name(Blocks& blocks, Sender& sender);
#include "engine/carriers/carriers.def"

// All of them, in order. Both outlive them.
inline std::vector<std::unique_ptr<Carrier>> make_carriers(Blocks& blocks, Sender& sender) {
  std::vector<std::unique_ptr<Carrier>> out;
#define OFFPATH_CARRIER(name) out.push_back(make_##name(blocks, sender));
#include "engine/carriers/carriers.def"
  return out;
}

}  // namespace offpath::engine
