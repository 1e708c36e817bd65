// SPDX-License-Identifier: BSD-3-Clause
// Carrier: a way in which blocks of this worker's members get to where they are wanted. When a block is there, the carriers
// are asked in the order of carriers.def; the first that takes it moves it. A new way is a file here and a row there.
// Internal to engine/.
#pragma once

#include <cstdint>

namespace offpath::engine {

struct Location;
struct Operation;

class Carrier {
 public:
  virtual ~Carrier() = default;
  // The block of an export is there, at `source` if it is not empty, and was asked for or not. True: it is taken care of; the carrier resolves the export
  // when the block has left or cannot, unless it is told to forget it. What may not leave at all is not offered.
  virtual bool take(Operation& operation, uint32_t export_index, const Location& source, bool asked) = 0;
  // Moves a chunk of everything it has taken. False: there was nothing to be done.
  virtual bool move() { return false; }
  // The export is resolved, or its operation over: nothing more of it leaves.
  virtual void forget(Operation&, uint32_t /*export_index*/) {}
  // A chunk that it sent has left; `transfer` is what it wrote into the chunk.
  virtual void on_sent(uint64_t /*transfer*/) {}
  // Of what it has taken: still to be sent over the fabric.
  virtual uint64_t bytes_left() const { return 0; }
};

}  // namespace offpath::engine
