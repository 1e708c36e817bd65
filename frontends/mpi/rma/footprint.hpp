// SPDX-License-Identifier: BSD-3-Clause
// Which bytes the elements of a datatype cover, on either side of a one-sided operation, and how the target's side is
// cut into what one operation of the service can name.
//
// Threads: values.
#pragma once

#include "mpi/types/datatype.hpp"
#include "mpi/types/flatten.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace offpath::mpi {

struct Footprint {
  int64_t size_bytes = 0;    // data bytes of one element
  int64_t extent_bytes = 0;  // from one element to the next
  std::shared_ptr<const Ranges> ranges;

  bool contiguous(int64_t elements) const {
    return ranges->size() == 1 && (elements == 1 || size_bytes == extent_bytes);
  }
  // That hold so many data bytes, the last one perhaps in part.
  int64_t elements_of(uint64_t bytes) const { return (static_cast<int64_t>(bytes) + size_bytes - 1) / size_bytes; }
  // The lowest offset of data, and the one behind the highest. Precondition: there is data. False: beyond 63 bits.
  bool bounds(int64_t elements, int64_t* low, int64_t* high) const;
};

// Nothing: a datatype that cannot be taken apart. `basic`: nullptr, or the predefined type of which it consists, to be
// taken whole: what pads a pair of value and index counts as data. Inside. May throw bad_alloc.
std::optional<Footprint> footprint_of(MPI_Datatype handle, const TypeRef& type, const DataType* basic);

// Copies the first `bytes` of elements between user memory and bytes one behind the other.
void gather(const Footprint& footprint, uintptr_t address, uint64_t bytes, std::byte* packed);
void scatter(const Footprint& footprint, const std::byte* packed, uintptr_t address, uint64_t bytes);

// A part of the elements. Its offsets count from offset_bytes and are not negative. No ranges: contiguous.
struct Piece {
  int64_t offset_bytes = 0;
  uint64_t bytes = 0;
  uint64_t size_bytes = 0;
  int64_t extent_bytes = 0;
  Ranges ranges;
};

// From ranges [first, first + count) of every one of `elements` elements.
Piece piece_of(const Footprint& footprint, size_t first, size_t count, int64_t elements);
// Elements that lie like the ranges do, evenly spaced; nothing if they are not.
std::optional<Piece> even_piece(const Footprint& footprint, int64_t elements);
bool is_one_piece(const Footprint& footprint, int64_t elements);

// Calls each(piece), in the order of the data, while it returns true. Precondition: there is data.
bool for_each_piece(const Footprint& footprint, int64_t elements, auto&& each) {
  constexpr size_t kMost = OFFPATH_REMOTE_RANGES_MAX;
  const size_t count = footprint.ranges->size();
  if (count <= kMost) return each(piece_of(footprint, 0, count, elements));
  if (std::optional<Piece> even = even_piece(footprint, elements)) return each(*even);
  for (int64_t element = 0; element < elements; ++element) {
    for (size_t first = 0; first < count; first += kMost) {
      Piece piece = piece_of(footprint, first, std::min(kMost, count - first), 1);
      piece.offset_bytes += element * footprint.extent_bytes;
      if (!each(piece)) return false;
    }
  }
  return true;
}

}  // namespace offpath::mpi
