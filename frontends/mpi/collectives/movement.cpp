// SPDX-License-Identifier: BSD-3-Clause
// Collectives that move data: everything but barrier, broadcast and allgather is an exchange of blocks.
#include "collectives/call.hpp"
#include "job.hpp"
#include "team.hpp"
#include "types/predefined.hpp"

#include <optional>

namespace offpath::mpi {
namespace {

using Empty = Side::Empty;

bool is_member(int rank, const Team& team) { return rank >= 0 && rank < team.size(); }

// Data bytes of `elements` of the stated type. Nothing: wrong arguments.
std::optional<uint64_t> bytes_of(const Stated& stated, int64_t elements, const Team& team) {
  const TypeRef type = elements < 0 ? nullptr : find_type(stated.type, team.shadow());
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
int64_t of_all(int64_t count, const Team& team) {
  int64_t all = 0;
  return __builtin_mul_overflow(count, int64_t{team.size()}, &all) ? -1 : all;
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
bool add_all(Side* side, const Stated& stated, Empty empty, const Team& team, int except = -1) {
  for (int rank = 0; rank < team.size(); ++rank) {
    const uint32_t peer = empty == Empty::leave_out ? static_cast<uint32_t>(rank) : 0;
    if (rank != except && !side->add(stated, rank, peer, 0, empty, team.shadow())) return false;
  }
  return true;
}

struct Half {
  Stated& stated;
  Side& side;
};

// gather and scatter: `many` blocks at the root, `one` at every member, the root's in place perhaps.
bool describe_rooted(Call& call, const Team& team, Half many, Half one) {
  const int root = call.arguments.root;
  const bool at_root = root == team.rank();
  if (!is_member(root, team) || (one.stated.buffer == MPI_IN_PLACE && !at_root)) return false;
  if (at_root && (many.stated.buffer == MPI_IN_PLACE || !has_arrays(many.stated, call.pairwise))) return false;
  uint64_t bytes = 0;
  if (!call.pairwise) {
    const Stated& known = at_root ? many.stated : one.stated;
    const auto all = bytes_of(known, of_all(known.count, team), team);
    if (!all) return false;
    bytes = *all;
  }
  if (!call.choose(team, bytes)) return false;
  const bool in_place = at_root && lies_in_place(one.stated, many.stated, root);
  if (in_place) one.stated.buffer = MPI_IN_PLACE;
  if (at_root && !add_all(&many.side, many.stated, Empty::leave_out, team, in_place ? root : -1)) return false;
  const auto peer = static_cast<uint32_t>(root);
  if (!in_place && !one.side.add(one.stated, 0, peer, 0, Empty::leave_out, team.shadow())) return false;
  call.divide(team);
  if (at_root && !call.keep(many.side, &many.stated, team.size())) return false;
  return in_place || call.keep(one.side, &one.stated, 1);
}

bool describe_neighbors(Call& call, const Team& team, bool same_to_all) {
  const Neighborhood* neighborhood = team.neighborhood();
  Arguments& a = call.arguments;
  if (neighborhood == nullptr || a.send.buffer == MPI_IN_PLACE || a.recv.buffer == MPI_IN_PLACE) return false;
  if (!call.choose(team, 0)) return false;
  const auto& sources = neighborhood->sources();
  const auto& destinations = neighborhood->destinations();
  const bool v_or_w = call.collective->id != policy::Collective::ineighbor_allgather &&
                      call.collective->id != policy::Collective::ineighbor_alltoall;
  if (!has_arrays(a.recv, v_or_w && !sources.empty())) return false;
  if (!has_arrays(a.send, v_or_w && !same_to_all && !destinations.empty())) return false;
  for (size_t i = 0; i < destinations.size(); ++i) {
    if (destinations[i].rank == MPI_PROC_NULL) continue;
    if (!call.send.add(a.send, same_to_all ? 0 : static_cast<int>(i), static_cast<uint32_t>(destinations[i].rank),
                       destinations[i].nth, Empty::leave_out, team.shadow())) {
      return false;
    }
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].rank == MPI_PROC_NULL) continue;
    if (!call.recv.add(a.recv, static_cast<int>(i), static_cast<uint32_t>(sources[i].rank),
                       neighborhood->arriving(call.collective->id, sources[i]), Empty::leave_out, team.shadow())) {
      return false;
    }
  }
  call.divide(team);
  return call.keep(call.send, &a.send, static_cast<int>(destinations.size())) &&
         call.keep(call.recv, &a.recv, static_cast<int>(sources.size()));
}

}  // namespace

bool Call::offloads_blocks(const Team& team) const {
  switch (team.adapter().preference()) {
    case Preference::host:
      return false;
    case Preference::dpu:
      return true;
    default:
      return job.policy().offloads(collective->id, team.nodes());
  }
}

bool Call::ask(const Team& team, uint64_t bytes) {
  recording::decision.why = "policy";
  if (pairwise) return offloads_blocks(team);
  asked_bytes = bytes;
  if (use == Use::many) {
    algorithm = job.policy().choose(collective->id, bytes, team.nodes()).algorithm;
    return team.adapter().may_offload(collective->id, bytes);
  }
  const Ask ask = team.adapter().ask(collective->id, bytes);
  const std::optional<Answer> answer = team.decide(ask);
  recording::decision.why = answer ? why_name(answer->why) : "agreement";
  if (!answer) {
    open = ask;
    return true;
  }
  algorithm = answer->choice.algorithm;
  on_council = answer->choice.path == policy::Path::host && team.adapter().adapts(collective->id, bytes);
  return answer->choice.path == policy::Path::dpu;
}

void Call::divide(const Team& team) {
  if (!pairwise) return;
  const bool never_host = team.adapter().preference() == Preference::dpu;
  const auto share_of = [&](uint64_t bytes) {
    const policy::Choice choice = job.policy().choose(collective->id, bytes, team.nodes());
    if (choice.path == policy::Path::host && !never_host) return Share::host;
    algorithm = choice.algorithm;
    return Share::service;
  };
  send.divide(share_of);
  recv.divide(share_of);
}

bool Call::keep(Side& side, Stated* stated, int entries) {
  // Messages are started before the caller has anything back.
  if (use == Use::once && !uses_service()) return true;
  if (side.hold() != MPI_SUCCESS) return false;
  // What goes pairwise is never given to a native collective.
  if (!pairwise && stated != nullptr) side.keep(stated, entries);
  return true;
}

bool describe_barrier(Call& call, const Team& team) { return call.choose(team, 0); }

bool describe_bcast(Call& call, const Team& team) {
  Stated& stated = call.arguments.recv;
  const int root = call.arguments.root;
  const auto bytes = bytes_of(stated, stated.count, team);
  if (!bytes || !is_member(root, team) || stated.buffer == MPI_IN_PLACE) return false;
  if (!call.choose(team, *bytes)) return false;
  Side& side = root == team.rank() ? call.send : call.recv;
  return side.add(stated, 0, 0, 0, Empty::keep, team.shadow()) && call.keep(side, &stated, 1);
}

bool describe_gather(Call& call, const Team& team) {
  return describe_rooted(call, team, {call.arguments.recv, call.recv}, {call.arguments.send, call.send});
}

bool describe_scatter(Call& call, const Team& team) {
  return describe_rooted(call, team, {call.arguments.send, call.send}, {call.arguments.recv, call.recv});
}

bool describe_allgather(Call& call, const Team& team) {
  Arguments& a = call.arguments;
  const bool irregular = call.collective->id == policy::Collective::iallgatherv;
  if (a.recv.buffer == MPI_IN_PLACE || !has_arrays(a.recv, irregular)) return false;
  const int64_t elements = irregular ? sum_of(a.recv.counts, team.size()) : of_all(a.recv.count, team);
  const auto bytes = bytes_of(a.recv, elements, team);
  if (!bytes || !call.choose(team, *bytes)) return false;
  const bool in_place = lies_in_place(a.send, a.recv, team.rank());
  if (in_place) a.send.buffer = MPI_IN_PLACE;
  const bool added = in_place ? call.send.add(a.recv, team.rank(), 0, 0, Empty::keep, team.shadow())
                              : call.send.add(a.send, 0, 0, 0, Empty::keep, team.shadow());
  if (!added || !add_all(&call.recv, a.recv, Empty::keep, team)) return false;
  return call.keep(call.send, in_place ? nullptr : &a.send, 1) && call.keep(call.recv, &a.recv, team.size());
}

bool describe_alltoall(Call& call, const Team& team) {
  Arguments& a = call.arguments;
  if (a.recv.buffer == MPI_IN_PLACE || !has_arrays(a.recv, call.pairwise)) return false;
  // Blocks with displacements may begin elsewhere.
  call.in_place = call.pairwise ? a.send.buffer == MPI_IN_PLACE : lies_in_place(a.send, a.recv, 0);
  if (call.in_place) a.send.buffer = MPI_IN_PLACE;
  if (!call.in_place && !has_arrays(a.send, call.pairwise)) return false;
  uint64_t bytes = 0;
  if (!call.pairwise) {
    const auto all = bytes_of(a.recv, of_all(a.recv.count, team), team);
    if (!all) return false;
    bytes = *all;
  }
  if (!call.choose(team, bytes)) return false;
  // In place the own block lies where it belongs.
  const int except = call.in_place ? team.rank() : -1;
  if (!add_all(&call.send, call.in_place ? a.recv : a.send, Empty::leave_out, team, except)) return false;
  if (!add_all(&call.recv, a.recv, Empty::leave_out, team, except)) return false;
  call.divide(team);
  if (call.in_place) call.send.stage_all();
  return call.keep(call.send, call.in_place ? nullptr : &a.send, team.size()) &&
         call.keep(call.recv, &a.recv, team.size());
}

bool describe_neighbor_allgather(Call& call, const Team& team) { return describe_neighbors(call, team, true); }

bool describe_neighbor_alltoall(Call& call, const Team& team) { return describe_neighbors(call, team, false); }

}  // namespace offpath::mpi
