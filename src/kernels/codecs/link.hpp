// SPDX-License-Identifier: BSD-3-Clause
// Link: how fast what leaves for one peer gets there, and is decoded there. It is told how much of what has left waits still, at
// some moments; between two of them at which something waited all the time, the link was what is waited for. So what passes
// at once, because a link that was idle lets a burst through, counts for as much as it was and no more. Times are the
// caller's, in ns. Pure.
#pragma once

#include "kernels/codecs/codec.hpp"

#include <array>
#include <cstdint>

namespace offpath::codecs {

// By codec.
using PerCodec = std::array<double, 8>;

// What it takes to get a byte to one peer, as far as is known.
struct Path {
  double link_ns = 0;
  double waiting_ns = 0;  // until all that has left before is there, as far as one can rely on that
  bool waits = false;     // something does
  bool idle = false;      // nothing did when the last chunk was handed over
  bool known = false;     // enough has passed to say anything
  PerCodec decode_ns{};   // that its service takes for a byte that was coded
  uint32_t in_turn = 1;   // peers for whom this worker codes chunks in turn
};

class Link {
 public:
  // So many bytes are handed over at this moment, as so many on the wire, behind what waits still.
  void left(uint64_t now, uint64_t waiting, uint64_t bytes, uint64_t wire_bytes);
  // At this moment so much of what has left waits still.
  void look(uint64_t now, uint64_t waiting);
  // All that waited has come, as its receiver says at this moment.
  void arrived(uint64_t now);
  // So long it took to decode what was coded of a block, this codec's part and others' together: mostly there is one.
  void decoded(CodecId codec, uint64_t bytes, uint64_t ns);

  double ns_per_byte() const;
  Path path(uint32_t in_turn) const;

 private:
  void note(uint64_t now, uint64_t passed, bool busy);
  uint64_t since_ = 0;    // it has had something to do
  uint64_t passed_ = 0;   // of that
  uint64_t waiting_ = 0;  // of that, and of what came later
  double ns_ = 0, bytes_ = 0;
  uint64_t left_ = 0;      // bytes, all together
  bool measured_ = false;  // while it had something to do all the time; else that is the most that it can be
  PerCodec decode_ns_{};
  double slowest_ns_ = 0;     // of those
  double left_of_coded_ = 0;  // of a byte, lately
  bool coded_ = false;        // some of what waits
  bool stood_idle_ = true;    // when the last chunk was handed over
};

}  // namespace offpath::codecs
