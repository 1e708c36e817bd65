// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/types/flatten.hpp"

#include "mpi/native/native.hpp"
#include "mpi/types/contents.hpp"
#include "mpi/types/predefined.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

constexpr int kMaxNesting = 64;

bool append(Ranges* to, int64_t offset, int64_t bytes) {
  if (!to->empty() && to->back().offset_bytes + static_cast<int64_t>(to->back().bytes) == offset) {
    to->back().bytes += static_cast<uint64_t>(bytes);
    return true;
  }
  if (to->size() >= kMaxRanges) return false;
  to->push_back({offset, static_cast<uint64_t>(bytes)});
  return true;
}

// `count` copies of what `part` covers, the first at offset `at`, each `step` bytes behind the one before.
bool repeat(const Ranges& part, int64_t count, int64_t step, int64_t at, Ranges* to) {
  if (part.empty() || count <= 0) return true;
  if (part.size() == 1 && static_cast<int64_t>(part[0].bytes) == step) {
    return append(to, at + part[0].offset_bytes, count * step);
  }
  for (int64_t i = 0; i < count; ++i) {
    for (const offpath_range_t& range : part) {
      if (!append(to, at + i * step + range.offset_bytes, static_cast<int64_t>(range.bytes))) return false;
    }
  }
  return true;
}

// What a constructor repeats: the ranges of one element and the distance to the next.
struct Part {
  Ranges ranges;
  int64_t extent = 0;
};

bool flatten_into(MPI_Datatype type, int nesting, Ranges* to);

bool read_part(MPI_Datatype type, int nesting, Part* part) {
  MPI_Aint lower = 0, extent = 0;
  if (native.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS) return false;
  part->extent = extent;
  return flatten_into(type, nesting + 1, &part->ranges);
}

// Blocks of `length` elements, one every `stride` bytes.
bool add_vector(const Part& part, int64_t count, int64_t length, int64_t stride, Ranges* to) {
  Ranges block;
  return repeat(part.ranges, length, part.extent, 0, &block) && repeat(block, count, stride, 0, to);
}

// Block i: `length(i)` elements at offset `at(i)`.
bool add_indexed(const Part& part, int64_t count, auto&& length, auto&& at, Ranges* to) {
  for (int64_t i = 0; i < count; ++i) {
    if (!repeat(part.ranges, length(i), part.extent, at(i), to)) return false;
  }
  return true;
}

// Integers: dimensions n, then n each of sizes, subsizes and starts, then the order.
bool add_subarray(const Contents& made, const Part& part, Ranges* to) {
  const int64_t n = made.integer(0);
  const bool c_order = made.integer(3 * n + 1) == MPI_ORDER_C;
  Ranges inner = part.ranges;
  int64_t step = part.extent;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t dimension = c_order ? n - 1 - k : k;
    const int64_t size = made.integer(1 + dimension);
    const int64_t subsize = made.integer(1 + n + dimension);
    const int64_t start = made.integer(1 + 2 * n + dimension);
    Ranges outer;
    if (!repeat(inner, subsize, step, start * step, &outer)) return false;
    inner = std::move(outer);
    step *= size;
  }
  return repeat(inner, 1, 0, 0, to);
}

// Which of a dimension's `size` elements process `place` of `places` has, appended as [first, count).
void distribute(int64_t size, int64_t how, int64_t argument, int64_t places, int64_t place, auto&& add) {
  const bool by_default = argument == MPI_DISTRIBUTE_DFLT_DARG;
  int64_t block = size;
  if (how == MPI_DISTRIBUTE_BLOCK) block = by_default ? (size + places - 1) / places : argument;
  if (how == MPI_DISTRIBUTE_CYCLIC) block = by_default ? 1 : argument;
  for (int64_t first = place * block; first < size; first += places * block) add(first, std::min(block, size - first));
}

// Integers: processes, rank, dimensions n, then n each of sizes, distributions, their arguments and processes, then the
// order. Ranks count the grid of processes in C's order whatever that of the array.
bool add_darray(const Contents& made, const Part& part, Ranges* to) {
  const int64_t n = made.integer(2);
  const bool c_order = made.integer(3 + 4 * n) == MPI_ORDER_C;
  std::vector<int64_t> place(static_cast<size_t>(n));
  for (int64_t d = n - 1, rest = made.integer(1); d >= 0; --d) {
    place[static_cast<size_t>(d)] = rest % made.integer(3 + 3 * n + d);
    rest /= made.integer(3 + 3 * n + d);
  }
  Ranges inner = part.ranges;
  int64_t step = part.extent;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t d = c_order ? n - 1 - k : k;
    const int64_t size = made.integer(3 + d);
    Ranges outer;
    bool fits = true;
    distribute(size, made.integer(3 + n + d), made.integer(3 + 2 * n + d), made.integer(3 + 3 * n + d),
               place[static_cast<size_t>(d)],
               [&](int64_t first, int64_t count) { fits = fits && repeat(inner, count, step, first * step, &outer); });
    if (!fits) return false;
    inner = std::move(outer);
    step *= size;
  }
  return repeat(inner, 1, 0, 0, to);
}

bool add_struct(const Contents& made, int nesting, Ranges* to) {
  const int64_t count = made.integer(0);
  for (int64_t i = 0; i < count; ++i) {
    Part part;
    if (!read_part(made.type(i), nesting, &part)) return false;
    if (!repeat(part.ranges, made.integer(1 + i), part.extent, made.address(i), to)) return false;
  }
  return true;
}

bool add_predefined(MPI_Datatype type, Ranges* to) {
  if (const TypeRef known = find_predefined(type)) return repeat(known->ranges, 1, 0, 0, to);
  MPI_Count size = 0;
  MPI_Aint lower = 0, extent = 0;
  if (native.Type_size_x(type, &size) != MPI_SUCCESS) return false;
  if (native.Type_get_extent(type, &lower, &extent) != MPI_SUCCESS || extent != size || lower != 0) return false;
  return size == 0 || append(to, 0, size);
}

bool flatten_into(MPI_Datatype type, int nesting, Ranges* to) {
  if (nesting > kMaxNesting) return false;
  const Contents made(type);
  if (made.combiner() == MPI_COMBINER_NAMED || is_f90(made.combiner())) return add_predefined(type, to);
  if (made.combiner() == MPI_UNDEFINED) return false;
  if (made.combiner() == MPI_COMBINER_STRUCT) return add_struct(made, nesting, to);
  Part part;
  if (!read_part(made.type(0), nesting, &part)) return false;
  const int64_t count = made.combiner() == MPI_COMBINER_DUP ? 1 : made.integer(0);  // where it has one
  const auto same_length = [&](int64_t) { return made.integer(1); };
  const auto own_length = [&](int64_t i) { return made.integer(1 + i); };
  const auto at_address = [&](int64_t i) { return made.address(i); };
  switch (made.combiner()) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return repeat(part.ranges, 1, 0, 0, to);
    case MPI_COMBINER_CONTIGUOUS:
      return repeat(part.ranges, count, part.extent, 0, to);
    case MPI_COMBINER_VECTOR:
      return add_vector(part, count, made.integer(1), made.integer(2) * part.extent, to);
    case MPI_COMBINER_HVECTOR:
      return add_vector(part, count, made.integer(1), made.address(0), to);
    case MPI_COMBINER_INDEXED:
      return add_indexed(
          part, count, own_length, [&](int64_t i) { return made.integer(1 + count + i) * part.extent; }, to);
    case MPI_COMBINER_HINDEXED:
      return add_indexed(part, count, own_length, at_address, to);
    case MPI_COMBINER_INDEXED_BLOCK:
      return add_indexed(
          part, count, same_length, [&](int64_t i) { return made.integer(2 + i) * part.extent; }, to);
    case MPI_COMBINER_HINDEXED_BLOCK:
      return add_indexed(part, count, same_length, at_address, to);
    case MPI_COMBINER_SUBARRAY:
      return add_subarray(made, part, to);
    case MPI_COMBINER_DARRAY:
      return add_darray(made, part, to);
    default:
      return false;
  }
}

bool find_basic(MPI_Datatype type, int nesting, TypeRef* basic) {
  if (nesting > kMaxNesting) return false;
  const Contents made(type);
  if (made.combiner() == MPI_COMBINER_NAMED) {
    const TypeRef known = find_predefined(type);
    if (known == nullptr || (*basic != nullptr && *basic != known)) return false;
    *basic = known;
    return true;
  }
  for (int64_t i = 0; i < made.types(); ++i) {
    if (!find_basic(made.type(i), nesting + 1, basic)) return false;
  }
  return made.types() > 0;
}

}  // namespace

TypeRef basic_type(MPI_Datatype type) {
  TypeRef basic;
  return find_basic(type, 0, &basic) ? basic : nullptr;
}

std::optional<Ranges> flatten(MPI_Datatype type) {
  Ranges ranges;
  if (!flatten_into(type, 0, &ranges)) return std::nullopt;
  return ranges;
}

}  // namespace offpath::mpi
