// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move data: everything but barrier, broadcast and allgather is an exchange of blocks.
#include "mpi/collectives/describing.hpp"
#include "mpi/types/predefined.hpp"

#include <optional>

namespace offpath::mpi {
namespace {

using Empty = Side::Empty;

bool is_member(int rank, const Lane& lane) { return rank >= 0 && rank < lane.size(); }

// Data bytes of `elements` of the stated type. Nothing: wrong arguments.
std::optional<uint64_t> bytes_of(const Stated& stated, int64_t elements, const Lane& lane) {
  const TypeRef type = elements < 0 ? nullptr : find_type(stated.type, lane.shadow());
  if (type == nullptr) return std::nullopt;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow(elements, type->size_bytes, &bytes)) return std::nullopt;
  return bytes;
}

// Are the arrays there that a v or w form needs?
bool has_arrays(const Stated& stated, bool irregular) {
  return !irregular || (stated.counts && (stated.displs || stated.displs_bytes != nullptr));
}

// The sum of the counts; negative if one of them is, or nothing has so many elements.
int64_t sum_of(const Numbers& counts, int entries) {
  int64_t sum = 0;
  for (int i = 0; i < entries; ++i) {
    if (counts[i] < 0 || __builtin_add_overflow(sum, counts[i], &sum)) return -1;
  }
  return sum;
}

// `count` for each member; negative as above.
int64_t of_all(int64_t count, const Lane& lane) {
  int64_t all = 0;
  return __builtin_mul_overflow(count, int64_t{lane.size()}, &all) ? -1 : all;
}

// MPI forbids the same memory on both sides, but a program may forget MPI_IN_PLACE, and that on one rank only: what it
// does with that memory is what it meant. `one` is a single block, or where all begin; block number `index` of `many`.
// Derived types may begin elsewhere.
bool lies_in_place(const Stated& one, const Stated& many, int index) {
  if (one.buffer == MPI_IN_PLACE) return true;
  const TypeRef type = find_predefined(many.type);
  return one.buffer != nullptr && type != nullptr && find_predefined(one.type) != nullptr &&
         reinterpret_cast<uintptr_t>(one.buffer) == address_of(many, index, type->extent_bytes);
}

// Adds a block for every member but `except`.
bool add_all(Side* side, const Stated& stated, Empty empty, const Lane& lane, int except = -1) {
  for (int rank = 0; rank < lane.size(); ++rank) {
    const uint32_t peer = empty == Empty::leave_out ? static_cast<uint32_t>(rank) : 0;
    if (rank != except && !side->add(stated, rank, peer, 0, empty, lane.shadow())) return false;
  }
  return true;
}

struct Half {
  Stated& stated;
  Side& side;
};

// gather and scatter: `many` blocks at the root, `one` at every member, the root's in place perhaps.
bool describe_rooted(Call& call, const Lane& lane, Half many, Half one) {
  const int root = call.arguments.root;
  const bool at_root = root == lane.rank();
  if (!is_member(root, lane) || (one.stated.buffer == MPI_IN_PLACE && !at_root)) return false;
  if (at_root && (many.stated.buffer == MPI_IN_PLACE || !has_arrays(many.stated, call.pairwise))) return false;
  uint64_t bytes = 0;
  if (!call.pairwise) {
    const Stated& known = at_root ? many.stated : one.stated;
    const auto all = bytes_of(known, of_all(known.count, lane), lane);
    if (!all) return false;
    bytes = *all;
  }
  if (!choose(call, lane, bytes)) return false;
  const bool in_place = at_root && lies_in_place(one.stated, many.stated, root);
  if (in_place) one.stated.buffer = MPI_IN_PLACE;
  if (at_root && !add_all(&many.side, many.stated, Empty::leave_out, lane, in_place ? root : -1)) return false;
  const auto peer = static_cast<uint32_t>(root);
  if (!in_place && !one.side.add(one.stated, 0, peer, 0, Empty::leave_out, lane.shadow())) return false;
  divide(call, lane);
  if (at_root && !call.keep(many.side, &many.stated, lane.size())) return false;
  return in_place || call.keep(one.side, &one.stated, 1);
}

bool describe_neighbors(Call& call, const Lane& lane, bool same_to_all) {
  const Neighborhood* neighborhood = lane.neighborhood();
  Arguments& a = call.arguments;
  if (neighborhood == nullptr || a.send.buffer == MPI_IN_PLACE || a.recv.buffer == MPI_IN_PLACE) return false;
  if (!choose(call, lane, 0)) return false;
  const auto& sources = neighborhood->sources();
  const auto& destinations = neighborhood->destinations();
  const bool v_or_w = call.collective->id != policy::Collective::ineighbor_allgather &&
                      call.collective->id != policy::Collective::ineighbor_alltoall;
  if (!has_arrays(a.recv, v_or_w && !sources.empty())) return false;
  if (!has_arrays(a.send, v_or_w && !same_to_all && !destinations.empty())) return false;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i].rank == MPI_PROC_NULL) continue;
    if (!call.send.add(a.send, same_to_all ? 0 : static_cast<int>(i), static_cast<uint32_t>(destinations[i].rank),
                       destinations[i].nth, Empty::leave_out, lane.shadow())) {
      return false;
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].rank == MPI_PROC_NULL) continue;
    if (!call.recv.add(a.recv, static_cast<int>(i), static_cast<uint32_t>(sources[i].rank),
                       neighborhood->arriving(call.collective->id, sources[i]), Empty::leave_out, lane.shadow())) {
      return false;
    }
  }
  divide(call, lane);
  return call.keep(call.send, &a.send, static_cast<int>(destinations.size())) &&
         call.keep(call.recv, &a.recv, static_cast<int>(sources.size()));
}

}  // namespace

bool describe_barrier(Call& call, const Lane& lane) { return choose(call, lane, 0); }

bool describe_bcast(Call& call, const Lane& lane) {
  Stated& stated = call.arguments.recv;
  const int root = call.arguments.root;
  const auto bytes = bytes_of(stated, stated.count, lane);
  if (!bytes || !is_member(root, lane) || stated.buffer == MPI_IN_PLACE) return false;
  if (!choose(call, lane, *bytes)) return false;
  Side& side = root == lane.rank() ? call.send : call.recv;
  return side.add(stated, 0, 0, 0, Empty::keep, lane.shadow()) && call.keep(side, &stated, 1);
}

bool describe_gather(Call& call, const Lane& lane) {
  return describe_rooted(call, lane, {call.arguments.recv, call.recv}, {call.arguments.send, call.send});
}

bool describe_scatter(Call& call, const Lane& lane) {
  return describe_rooted(call, lane, {call.arguments.send, call.send}, {call.arguments.recv, call.recv});
}

bool describe_allgather(Call& call, const Lane& lane) {
  Arguments& a = call.arguments;
  const bool irregular = call.collective->id == policy::Collective::iallgatherv;
  if (a.recv.buffer == MPI_IN_PLACE || !has_arrays(a.recv, irregular)) return false;
  const int64_t elements = irregular ? sum_of(a.recv.counts, lane.size()) : of_all(a.recv.count, lane);
  const auto bytes = bytes_of(a.recv, elements, lane);
  if (!bytes || !choose(call, lane, *bytes)) return false;
  const bool in_place = lies_in_place(a.send, a.recv, lane.rank());
  if (in_place) a.send.buffer = MPI_IN_PLACE;
  const bool added = in_place ? call.send.add(a.recv, lane.rank(), 0, 0, Empty::keep, lane.shadow())
                              : call.send.add(a.send, 0, 0, 0, Empty::keep, lane.shadow());
  if (!added || !add_all(&call.recv, a.recv, Empty::keep, lane)) return false;
  return call.keep(call.send, in_place ? nullptr : &a.send, 1) && call.keep(call.recv, &a.recv, lane.size());
}

bool describe_alltoall(Call& call, const Lane& lane) {
  Arguments& a = call.arguments;
  if (a.recv.buffer == MPI_IN_PLACE || !has_arrays(a.recv, call.pairwise)) return false;
  // Blocks with displacements may begin elsewhere.
  call.in_place = call.pairwise ? a.send.buffer == MPI_IN_PLACE : lies_in_place(a.send, a.recv, 0);
  if (call.in_place) a.send.buffer = MPI_IN_PLACE;
  if (!call.in_place && !has_arrays(a.send, call.pairwise)) return false;
  uint64_t bytes = 0;
  if (!call.pairwise) {
    const auto all = bytes_of(a.recv, of_all(a.recv.count, lane), lane);
    if (!all) return false;
    bytes = *all;
  }
  if (!choose(call, lane, bytes)) return false;
  // In place the own block lies where it belongs.
  const int except = call.in_place ? lane.rank() : -1;
  if (!add_all(&call.send, call.in_place ? a.recv : a.send, Empty::leave_out, lane, except)) return false;
  if (!add_all(&call.recv, a.recv, Empty::leave_out, lane, except)) return false;
  divide(call, lane);
  if (call.in_place) call.send.stage_all();
  return call.keep(call.send, call.in_place ? nullptr : &a.send, lane.size()) &&
         call.keep(call.recv, &a.recv, lane.size());
}

bool describe_neighbor_allgather(Call& call, const Lane& lane) { return describe_neighbors(call, lane, true); }

bool describe_neighbor_alltoall(Call& call, const Lane& lane) { return describe_neighbors(call, lane, false); }

}  // namespace offpath::mpi
