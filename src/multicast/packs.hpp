// SPDX-License-Identifier: BSD-3-Clause
// Packs: chunks of one part that are coded together. The coded form of a pack leaves in fewer datagrams than it has chunks; each of
// these has the number of one of the pack's chunks, with a bit that says what it is. So all else about chunks stays as it is: a pack
// comes whole, or its chunks are missing. Pure. docs/design/0022-multicast.md
#pragma once

#include "multicast/arrivals.hpp"

#include <map>
#include <span>

namespace offpath::multicast {

inline constexpr uint32_t kCoded = uint32_t{1} << 31;  // in a datagram's number
static_assert(kMostChunks <= kCoded);

// How a pack is coded; each of its datagrams begins with that.
struct Coded {
  uint32_t bytes = 0;  // of the coded form
  uint32_t check = 0;  // of what it means
  uint8_t codec = 0;
  uint8_t width = 0;  // of the filter
  bool operator==(const Coded&) const = default;
};
inline constexpr size_t kCodedHeadBytes = 10;

class Packs {
 public:
  using Bytes = std::span<const uint8_t>;
  static constexpr size_t kMostOpen = 64;  // packs of which a part has come; what is older is given up

  // How many chunks make a pack of about that many bytes. Numbers of 8 bytes do not lie in two packs.
  static uint32_t chunks_for(size_t chunk_bytes, size_t pack_bytes);
  // Nothing: no packs can be like that, or none that have room for anything.
  static std::optional<Packs> make(uint32_t pack_chunks, size_t chunk_bytes);

  // The pack that this chunk is in: the last one of a part may be shorter.
  Chunks pack_of(const Shape& shape, uint32_t chunk) const;
  // Of coded bytes in one datagram.
  size_t room() const { return chunk_bytes_ - kCodedHeadBytes; }
  uint32_t datagrams(uint32_t coded_bytes) const { return static_cast<uint32_t>((coded_bytes + room() - 1) / room()); }
  // The longest coded form that is worth it: of bytes that are that long, and so many chunks.
  size_t worthwhile(const Chunks& pack, uint64_t bytes) const;
  // Datagram `index` of a coded pack.
  Bytes write(const Coded& coded, Bytes bytes, uint32_t index);

  struct Whole {
    Chunks pack;
    Coded coded;
    std::vector<uint8_t> bytes;
  };
  // A datagram with kCoded has come. Returns its pack, if that is whole now and something of it is missing still. What does not
  // fit is passed over.
  std::optional<Whole> take(const Arrivals& arrivals, uint32_t sender, uint32_t number, Bytes datagram);

  // Of what has come in packs, and of those of which a part is missing still: so many chunks more than datagrams.
  uint64_t spared() const;
  // Of the latter, chunks that were fetched though no datagram was lost for them.
  uint64_t fetched_too() const;

 private:
  struct Open {
    Chunks pack;
    Coded coded;
    std::vector<uint8_t> bytes;
    std::vector<bool> here;  // datagrams
    uint32_t missing = 0;
    uint64_t age = 0;
  };

  Packs(uint32_t pack_chunks, size_t chunk_bytes) : pack_chunks_(pack_chunks), chunk_bytes_(chunk_bytes) {}
  Open* open(const Chunks& pack, const Coded& coded);

  uint32_t pack_chunks_;
  size_t chunk_bytes_;
  std::vector<uint8_t> datagram_;  // to be sent
  std::map<uint32_t, Open> open_;  // by the first chunk
  uint64_t opened_ = 0;
  uint64_t spared_ = 0;
};

}  // namespace offpath::multicast
