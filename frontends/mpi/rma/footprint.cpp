// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/footprint.hpp"

#include <cstring>

namespace offpath::mpi {
namespace {

void append(Ranges* to, int64_t offset, uint64_t bytes) {
  if (!to->empty() && to->back().offset_bytes + static_cast<int64_t>(to->back().bytes) == offset)
    to->back().bytes += bytes;
  else
    to->push_back({offset, bytes});
}

// Ranges of data, as ranges of whole elements of `basic`. Nothing: they are no such elements.
std::optional<Ranges> widen(const Ranges& ranges, const DataType& basic) {
  Ranges whole;
  size_t at = 0;
  uint64_t used = 0;  // bytes of ranges[at]
  while (at < ranges.size()) {
    const int64_t start = ranges[at].offset_bytes + static_cast<int64_t>(used);
    for (const offpath_range_t& part : basic.ranges) {
      if (at == ranges.size() || ranges[at].bytes - used < part.bytes) return std::nullopt;
      if (ranges[at].offset_bytes + static_cast<int64_t>(used) != start + part.offset_bytes) return std::nullopt;
      used += part.bytes;
      if (used < ranges[at].bytes) continue;
      ++at;
      used = 0;
    }
    append(&whole, start, static_cast<uint64_t>(basic.extent_bytes));
  }
  return whole;
}

// The last element may be cut short.
void for_each_range(const Footprint& footprint, uintptr_t address, uint64_t bytes, auto* packed, auto&& copy) {
  if (footprint.contiguous(footprint.elements_of(bytes))) {
    return copy(address + static_cast<uintptr_t>(footprint.ranges->front().offset_bytes), packed, bytes);
  }
  for (; bytes > 0; address += static_cast<uintptr_t>(footprint.extent_bytes)) {
    for (const offpath_range_t& range : *footprint.ranges) {
      const uint64_t part = std::min(range.bytes, bytes);
      copy(address + static_cast<uintptr_t>(range.offset_bytes), packed, part);
      packed += part;
      bytes -= part;
    }
  }
}

}  // namespace

bool Footprint::bounds(int64_t elements, int64_t* low, int64_t* high) const {
  *low = ranges->front().offset_bytes;
  *high = *low;
  for (const offpath_range_t& range : *ranges) {
    *low = std::min(*low, range.offset_bytes);
    *high = std::max(*high, range.offset_bytes + static_cast<int64_t>(range.bytes));
  }
  int64_t last = 0;
  if (__builtin_mul_overflow(elements - 1, extent_bytes, &last)) return false;
  int64_t* const moved = last < 0 ? low : high;
  return !__builtin_add_overflow(*moved, last, moved);
}

std::optional<Footprint> footprint_of(MPI_Datatype handle, const TypeRef& type, const DataType* basic) {
  Footprint made{type->size_bytes, type->extent_bytes, {type, &type->ranges}};
  if (type->size_bytes == 0) return made;
  if (type->ranges.empty()) {
    std::optional<Ranges> ranges = flatten(handle);
    if (!ranges || ranges->empty()) return std::nullopt;
    made.ranges = std::make_shared<const Ranges>(std::move(*ranges));
  }
  if (basic != nullptr && basic->size_bytes != basic->extent_bytes) {
    std::optional<Ranges> whole = widen(*made.ranges, *basic);
    if (!whole) return std::nullopt;
    made.ranges = std::make_shared<const Ranges>(std::move(*whole));
    made.size_bytes = made.size_bytes / basic->size_bytes * basic->extent_bytes;
  }
  return made;
}

void gather(const Footprint& footprint, uintptr_t address, uint64_t bytes, std::byte* packed) {
  for_each_range(footprint, address, bytes, packed, [](uintptr_t from, std::byte* to, uint64_t part) {
    memcpy(to, reinterpret_cast<const void*>(from), part);
  });
}

void scatter(const Footprint& footprint, const std::byte* packed, uintptr_t address, uint64_t bytes) {
  for_each_range(footprint, address, bytes, packed, [](uintptr_t to, const std::byte* from, uint64_t part) {
    memcpy(reinterpret_cast<void*>(to), from, part);
  });
}

Piece piece_of(const Footprint& footprint, size_t first, size_t count, int64_t elements) {
  const auto begin = footprint.ranges->begin() + static_cast<std::ptrdiff_t>(first);
  const auto end = begin + static_cast<std::ptrdiff_t>(count);
  Piece piece;
  piece.offset_bytes = begin->offset_bytes;
  for (auto range = begin; range != end; ++range) {
    piece.offset_bytes = std::min(piece.offset_bytes, range->offset_bytes);
    piece.size_bytes += range->bytes;
  }
  piece.bytes = piece.size_bytes * static_cast<uint64_t>(elements);
  piece.extent_bytes = footprint.extent_bytes;
  if (count == 1 && (elements == 1 || static_cast<int64_t>(piece.size_bytes) == piece.extent_bytes)) return piece;
  piece.ranges.reserve(count);
  for (auto range = begin; range != end; ++range) {
    piece.ranges.push_back({range->offset_bytes - piece.offset_bytes, range->bytes});
  }
  return piece;
}

std::optional<Piece> even_piece(const Footprint& footprint, int64_t elements) {
  const Ranges& ranges = *footprint.ranges;
  if (ranges.size() < 2) return std::nullopt;
  const int64_t step = ranges[1].offset_bytes - ranges[0].offset_bytes;
  const auto count = static_cast<int64_t>(ranges.size());
  if (step <= 0 || (elements > 1 && footprint.extent_bytes != count * step)) return std::nullopt;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].bytes != ranges[0].bytes || ranges[i].offset_bytes - ranges[i - 1].offset_bytes != step) {
      return std::nullopt;
    }
  }
  const uint64_t bytes = ranges[0].bytes;
  return Piece{ranges[0].offset_bytes, bytes * static_cast<uint64_t>(count * elements), bytes, step, {{0, bytes}}};
}

bool is_one_piece(const Footprint& footprint, int64_t elements) {
  return footprint.ranges->size() <= OFFPATH_REMOTE_RANGES_MAX || even_piece(footprint, elements).has_value();
}

}  // namespace offpath::mpi
