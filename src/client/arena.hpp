// SPDX-License-Identifier: BSD-3-Clause
// Arena: hands out pieces of the session segment's arena. Only the client allocates; its book-keeping is private
// memory, so nobody else can damage it. Sizes are rounded up to powers of two; freed pieces are kept by size, and put
// together again with their neighbours only when a piece is wanted that none of them is: what was all given back can be
// had again in any sizes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace offpath::client {

class Arena {
 public:
  Arena(uint64_t begin, uint64_t end) : capacity_(end - begin), spans_{{begin, end - begin}} {}
  // Offset of a piece of at least `bytes`, 64-byte aligned; 0 when there is no room.
  uint64_t allocate(uint64_t bytes);
  void release(uint64_t offset, uint64_t bytes);
  // Whether an empty arena has room for a piece of `bytes`.
  bool could_hold(uint64_t bytes) const;

 private:
  struct Span {
    uint64_t offset;
    uint64_t bytes;
  };
  static unsigned size_class(uint64_t bytes);
  uint64_t cut(uint64_t length);
  bool merge();

  uint64_t capacity_;
  std::vector<Span> spans_;                      // not cut into pieces, in the order of their offsets
  std::array<std::vector<uint64_t>, 40> freed_;  // pieces by size class
  bool mergeable_ = false;                       // has anything been freed since the last merge?
};

}  // namespace offpath::client
