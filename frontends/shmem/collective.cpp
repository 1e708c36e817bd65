// SPDX-License-Identifier: BSD-3-Clause
#include "shmem/collective.hpp"

#include "base/result.hpp"
#include "shmem/job.hpp"
#include "shmem/waiting.hpp"

#include <array>
#include <exception>
#include <string>
#include <vector>

namespace offpath::shmem {
namespace {

constexpr uint64_t kLookNs = 100'000;  // so often the native library is kept going

// One call: whom it concerns, whether it is waited for, and how it is done (choose).
struct Call {
  Family family;
  policy::Collective row;
  const ActiveSet& set;
  offpath_op_t** begun;
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
};

[[gnu::cold]] void fail(offpath_status_t status, Family family) {
  job.fail(status, std::string("a ") + family_name(family) + " with other PEs");
}

// False: out of the address space.
bool multiply(uint64_t a, uint64_t b, uint64_t* product) { return !__builtin_mul_overflow(a, b, product); }

offpath_block_t block_of(const void* address, uint64_t bytes, uint32_t peer = 0, uint32_t layout = 0) {
  offpath_block_t block{};
  block.peer = peer;
  block.address = address;
  block.bytes = bytes;
  block.layout = layout;
  return block;
}

offpath_collective_t collective_of(offpath_collective_kind_t kind, const std::vector<offpath_block_t>& send,
                                   const std::vector<offpath_block_t>& recv) {
  offpath_collective_t collective{};
  collective.struct_bytes = sizeof(collective);
  collective.kind = kind;
  collective.send = send.data();
  collective.recv = recv.data();
  collective.send_count = static_cast<uint32_t>(send.size());
  collective.recv_count = static_cast<uint32_t>(recv.size());
  return collective;
}

offpath_status_t wait_until_done(offpath_op_t* op) {
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  while ((status = offpath_op_wait(op, kLookNs)) == OFFPATH_IN_PROGRESS) progress();
  offpath_op_free(op);
  return status;
}

// The team that a call concerns, if calls of its form may be offloaded; null: it is native.
Team* find_team(const Call& call) {
  if (!job.serves() || (call.begun == nullptr && !job.offloads_blocking(call.row))) return nullptr;
  Team* const team = job.active_sets().find(call.set);
  if (team == nullptr || team->size < 2) return nullptr;
  if (job.policy().offloads(call.row, team->nodes)) return team;
  job.counters().of(call.family).native_count.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

// The same with what all know alike of its size: as policy::Table::choose wants it.
Team* choose(Call& call, uint64_t bytes) {
  Team* const team = bytes == 0 ? nullptr : find_team(call);
  if (team == nullptr) return nullptr;
  const policy::Choice choice = job.policy().choose(call.row, bytes, team->nodes);
  call.algorithm = choice.algorithm;
  if (choice.path == policy::Path::dpu) return team;
  job.counters().of(call.family).native_count.fetch_add(1, std::memory_order_relaxed);
  return nullptr;
}

// Whatever fails from here on fails at this PE alone: no way back to the native library.
offpath_status_t post(const Call& call, Team* team, const offpath_collective_t& collective, offpath_op_t** op) {
  const offpath_status_t made = job.active_sets().make(call.set, team);
  return made != OFFPATH_OK ? made : offpath_collective(team->end, &collective, op);
}

// Always true: the call is served, or the job ends.
bool execute(const Call& call, Team* team, offpath_collective_t collective, uint64_t bytes) {
  collective.algorithm = call.algorithm;
  offpath_op_t* op = nullptr;
  offpath_status_t status = post(call, team, collective, &op);
  if (status == OFFPATH_OK && call.begun == nullptr) status = wait_until_done(op);
  if (status != OFFPATH_OK) {
    fail(status, call.family);
    return true;
  }
  if (call.begun != nullptr) *call.begun = op;
  job.counters().of(call.family).offloaded_count.fetch_add(1, std::memory_order_relaxed);
  job.counters().offloaded_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

// Calls serve(): false where it is native. A guest does not throw.
template <class Serve>
bool guarded(Family family, Serve serve) {
  const base::ErrnoGuard errno_guard;
  try {
    return serve();
  } catch (const std::exception&) {
    fail(OFFPATH_ERR_NO_MEMORY, family);
    return true;
  }
}

// Blocks of `lengths` bytes, one after the other.
std::vector<offpath_block_t> blocks_of(void* dest, const std::vector<uint64_t>& lengths) {
  std::vector<offpath_block_t> blocks;
  auto* place = static_cast<std::byte*>(dest);
  for (const uint64_t bytes : lengths) {
    blocks.push_back(block_of(place, bytes));
    place += bytes;
  }
  return blocks;
}

}  // namespace

bool broadcast(void* dest, const void* source, uint64_t bytes, int root, const ActiveSet& set, offpath_op_t** begun) {
  return guarded(Family::broadcast, [&] {
    Call call{Family::broadcast, policy::Collective::ibcast, set, begun};
    if (root < 0 || root >= set.size) return false;
    Team* const team = choose(call, bytes);
    if (team == nullptr) return false;
    const bool sends = root == team->member;
    const std::vector<offpath_block_t> block{block_of(sends ? source : dest, bytes)}, none;
    offpath_collective_t collective = collective_of(OFFPATH_BCAST, sends ? block : none, sends ? none : block);
    collective.root = static_cast<uint32_t>(root);
    return execute(call, team, collective, bytes);
  });
}

bool fcollect(void* dest, const void* source, uint64_t bytes, const ActiveSet& set, offpath_op_t** begun) {
  return guarded(Family::fcollect, [&] {
    Call call{Family::fcollect, policy::Collective::iallgather, set, begun};
    uint64_t all = 0;
    if (set.size < 1 || !multiply(bytes, static_cast<uint64_t>(set.size), &all)) return false;
    Team* const team = choose(call, all);
    if (team == nullptr) return false;
    const std::vector<offpath_block_t> send{block_of(source, bytes)};
    const auto recv = blocks_of(dest, std::vector<uint64_t>(static_cast<size_t>(team->size), bytes));
    offpath_collective_t collective = collective_of(OFFPATH_ALLGATHER, send, recv);
    return execute(call, team, collective, all);
  });
}

bool collect(void* dest, const void* source, uint64_t bytes, const ActiveSet& set) {
  return guarded(Family::collect, [&] {
    Call call{Family::collect, policy::Collective::iallgatherv, set, nullptr};
    Team* const team = find_team(call);
    if (team == nullptr) return false;
    std::vector<uint64_t> lengths(static_cast<size_t>(team->size));
    const std::vector<offpath_block_t> own{block_of(&bytes, sizeof(bytes))};
    const auto told = blocks_of(lengths.data(), std::vector<uint64_t>(lengths.size(), sizeof(bytes)));
    offpath_op_t* op = nullptr;
    offpath_status_t status = post(call, team, collective_of(OFFPATH_ALLGATHER, own, told), &op);
    if (status == OFFPATH_OK) status = wait_until_done(op);
    uint64_t all = 0;
    bool fits = true;
    for (const uint64_t length : lengths) fits = fits && !__builtin_add_overflow(all, length, &all);
    if (status != OFFPATH_OK) {
      fail(status, call.family);
      return true;
    }
    if (!fits || choose(call, all) == nullptr) return false;
    const std::vector<offpath_block_t> send{block_of(source, bytes)};
    const auto recv = blocks_of(dest, lengths);
    offpath_collective_t collective = collective_of(OFFPATH_ALLGATHER, send, recv);
    return execute(call, team, collective, all);
  });
}

bool alltoall(void* dest, const void* source, const Portions& portions, const ActiveSet& set, offpath_op_t** begun) {
  return guarded(Family::alltoall, [&] {
    Call call{Family::alltoall, policy::Collective::ialltoall, set, begun};
    // Of a side: what an element takes with the gap behind it, and a portion.
    struct Side {
      ptrdiff_t stride;
      uint64_t element = 0, portion = 0, all = 0;
      bool fits(const Portions& of, uint64_t pes) {
        return stride >= 1 && multiply(of.bytes, static_cast<uint64_t>(stride), &element) &&
               multiply(element, of.count, &portion) && multiply(portion, pes, &all) && all <= INT64_MAX;
      }
    } to{portions.dest_stride}, from{portions.source_stride};
    if (set.size < 1) return false;
    const auto pes = static_cast<uint64_t>(set.size);
    if (!to.fits(portions, pes) || !from.fits(portions, pes)) return false;
    const uint64_t bytes = portions.count * portions.bytes;
    Team* const team = choose(call, bytes * pes);
    if (team == nullptr) return false;
    const offpath_range_t element{0, portions.bytes};
    const std::array<offpath_layout_t, 2> layouts{{{portions.bytes, static_cast<int64_t>(to.element), &element, 1},
                                                   {portions.bytes, static_cast<int64_t>(from.element), &element, 1}}};
    std::vector<offpath_block_t> send, recv;
    for (uint32_t peer = 0; peer < pes; ++peer) {
      send.push_back(block_of(static_cast<const std::byte*>(source) + peer * from.portion, bytes, peer,
                              portions.source_stride == 1 ? 0 : 2));
      recv.push_back(
          block_of(static_cast<std::byte*>(dest) + peer * to.portion, bytes, peer, portions.dest_stride == 1 ? 0 : 1));
    }
    offpath_collective_t collective = collective_of(OFFPATH_EXCHANGE, send, recv);
    if (portions.dest_stride != 1 || portions.source_stride != 1) {
      collective.layouts = layouts.data();
      collective.layouts_count = static_cast<uint32_t>(layouts.size());
    }
    return execute(call, team, collective, bytes * pes);
  });
}

bool reduce(void* dest, const void* source, int64_t count, uint64_t bytes, const Reduction& reduction,
            const ActiveSet& set, offpath_op_t** begun) {
  return guarded(Family::reduce, [&] {
    Call call{Family::reduce, policy::Collective::iallreduce, set, begun};
    uint64_t all = 0;
    if (count < 1 || !multiply(static_cast<uint64_t>(count), bytes, &all)) return false;
    Team* const team = choose(call, all);
    if (team == nullptr) return false;
    const std::vector<offpath_block_t> send{block_of(source, all)}, recv{block_of(dest, all)};
    offpath_collective_t collective = collective_of(OFFPATH_ALLREDUCE, send, recv);
    collective.op = reduction.op;
    collective.element = reduction.element;
    return execute(call, team, collective, all);
  });
}

bool test(offpath_op_t* op) {
  const base::ErrnoGuard errno_guard;
  const offpath_status_t status = offpath_op_help(op);
  if (status == OFFPATH_IN_PROGRESS) {
    progress();
    return false;
  }
  offpath_op_free(op);
  if (status != OFFPATH_OK) job.fail(status, "a collective with other PEs");
  return true;
}

void wait(offpath_op_t* op) {
  const base::ErrnoGuard errno_guard;
  const offpath_status_t status = wait_until_done(op);
  if (status != OFFPATH_OK) job.fail(status, "a collective with other PEs");
}

}  // namespace offpath::shmem
