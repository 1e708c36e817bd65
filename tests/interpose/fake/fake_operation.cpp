// SPDX-License-Identifier: BSD-3-Clause
// Operations of the fake client. Whatever the collective, each member reads every other member's offer once and takes
// what it needs from it; reductions are done by every member for itself when all have been read. An operation ends when
// all have read its own offer. In an exchange only those that blocks are from read, and only those they are for are
// waited for, as others may have skipped it.
#include "fake.hpp"
#include "kernels/reduce.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>

namespace {

using Bytes = std::vector<char>;

constexpr long kTestsOfSilence = 2000;  // of an operation that its service has not begun

// A collective's description, copied; offers are read by other processes, so all is reached by address.
struct Offer {
  uint64_t send;  // offpath_block_t[send_count]
  uint64_t send_count;
  uint64_t layouts;  // offpath_layout_t[], their ranges in the same memory
};

bool read_remote(int pid, uint64_t from, void* to, uint64_t bytes) {
  while (bytes > 0) {
    iovec local{to, bytes};
    iovec remote{reinterpret_cast<void*>(from), bytes};
    const ssize_t moved = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    from += static_cast<uint64_t>(moved);
    to = static_cast<char*>(to) + moved;
    bytes -= static_cast<uint64_t>(moved);
  }
  return true;
}

template <typename Element>
bool read_array(int pid, const void* from, size_t count, std::vector<Element>* to) {
  to->resize(count);
  return read_remote(pid, reinterpret_cast<uint64_t>(from), to->data(), count * sizeof(Element));
}

// Calls each(address, bytes) for the runs of memory that make up the first `bytes` bytes of a block.
void for_each_run(const offpath_block_t& block, const offpath_layout_t* layout, uint64_t bytes, auto&& each) {
  auto address = reinterpret_cast<uint64_t>(block.address);
  if (block.layout == 0) return each(address, bytes);
  while (bytes > 0) {
    for (uint32_t i = 0; i < layout->ranges_count && bytes > 0; ++i) {
      const uint64_t run = std::min(bytes, layout->ranges[i].bytes);
      each(address + static_cast<uint64_t>(layout->ranges[i].offset_bytes), run);
      bytes -= run;
    }
    address += static_cast<uint64_t>(layout->extent_bytes);
  }
}

// The data bytes of a peer's block.
bool read_block(int pid, const Offer& offer, const offpath_block_t& block, Bytes* data) {
  offpath_layout_t layout{};
  std::vector<offpath_range_t> ranges;
  if (block.layout != 0) {
    if (!read_remote(pid, offer.layouts + (block.layout - 1) * sizeof(layout), &layout, sizeof(layout))) return false;
    if (!read_array(pid, layout.ranges, layout.ranges_count, &ranges)) return false;
    layout.ranges = ranges.data();
  }
  data->resize(block.bytes);
  char* to = data->data();
  bool read = true;
  for_each_run(block, &layout, block.bytes, [&](uint64_t from, uint64_t bytes) {
    read = read && read_remote(pid, from, to, bytes);
    to += bytes;
  });
  return read;
}

}  // namespace

struct offpath_op {
  std::shared_ptr<fake::Remote> remote;  // if it is one-sided; then the rest is not used but for the team
  offpath_team* team = nullptr;
  uint64_t number = 0;
  long tests = 0;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  offpath_collective_t what{};
  std::vector<offpath_block_t> send, recv;
  std::vector<offpath_layout_t> layouts;
  std::vector<std::vector<offpath_range_t>> ranges;
  std::vector<uint64_t> counts;
  Offer offer{};
  std::vector<bool> done_with;       // members whose offer was read, or need not be
  uint64_t readers = 0;              // members that read the own offer
  std::vector<Bytes> contributions;  // reductions: by member
};

namespace {

bool reduces(offpath_collective_kind_t kind) { return kind >= OFFPATH_REDUCE; }

std::unique_ptr<offpath_op> copy(const offpath_collective_t& what, offpath_team* team) {
  auto op = std::make_unique<offpath_op>();
  op->team = team;
  op->number = team->posted;
  op->what = what;
  op->send.assign(what.send, what.send + what.send_count);
  op->recv.assign(what.recv, what.recv + what.recv_count);
  if (what.kind == OFFPATH_REDUCE_SCATTER) op->counts.assign(what.counts_bytes, what.counts_bytes + team->size);
  for (uint32_t i = 0; i < what.layouts_count; ++i) {
    op->ranges.emplace_back(what.layouts[i].ranges, what.layouts[i].ranges + what.layouts[i].ranges_count);
    op->layouts.push_back(what.layouts[i]);
    op->layouts.back().ranges = op->ranges.back().data();
  }
  const bool exchanges = what.kind == OFFPATH_EXCHANGE;
  std::set<uint32_t> readers;
  for (const offpath_block_t& block : op->send) readers.insert(block.peer);
  op->readers = exchanges ? readers.size() : team->size;
  op->done_with.assign(team->size, exchanges);
  for (const offpath_block_t& block : op->recv) {
    if (exchanges) op->done_with[block.peer] = false;
  }
  op->contributions.resize(team->size);
  op->offer = {reinterpret_cast<uint64_t>(op->send.data()), op->send.size(),
               reinterpret_cast<uint64_t>(op->layouts.data())};
  return op;
}

void part(const offpath_team& team) {
  uint64_t posted_by_all = fake::parting().from, not_yet = 0;
  for (uint32_t i = 0; i < team.size; ++i)
    posted_by_all = std::min(posted_by_all, team.board->members[i].visible.load());
  team.board->parted.compare_exchange_strong(not_yet, posted_by_all + 1);
}

void lose(offpath_session* session, const offpath_team* on, uint64_t begun) {
  session->lost = true;
  for (offpath_team* team : session->teams) {
    team->own().started = team == on ? begun : team->posted;
    team->own().lost = 1;
  }
}

offpath_status_t end(offpath_op* op, offpath_status_t status) {
  op->status = status;
  op->team->session->events.fetch_add(1);
  (status == OFFPATH_OK ? op->team->session->completed : op->team->session->failed) += 1;
  op->team->in_use[op->number % fake::kRing] = false;
  return status;
}

offpath_status_t deliver(const offpath_op& op, const offpath_block_t& block, const Bytes& data) {
  if (data.size() > block.bytes) return OFFPATH_ERR_TRUNCATED;
  const offpath_layout_t* layout = block.layout == 0 ? nullptr : &op.layouts[block.layout - 1];
  const char* from = data.data();
  for_each_run(block, layout, data.size(), [&](uint64_t to, uint64_t bytes) {
    if (bytes > 0) memcpy(reinterpret_cast<void*>(to), from, bytes);
    from += bytes;
  });
  return OFFPATH_OK;
}

// Takes what this member needs from `peer`.
offpath_status_t read_offer(offpath_op* op, uint32_t peer) {
  fake::Member& other = op->team->board->members[peer];
  fake::Slot& slot = other.ring[op->number % fake::kRing];
  const int pid = other.pid;
  if (slot.number != op->number) return OFFPATH_ERR_INTERNAL;  // skipped there
  Offer offer{};
  std::vector<offpath_block_t> blocks;
  if (!read_remote(pid, slot.offer, &offer, sizeof(offer)) ||
      !read_array(pid, reinterpret_cast<const void*>(offer.send), offer.send_count, &blocks)) {
    return OFFPATH_ERR_INTERNAL;
  }
  for (const offpath_block_t& block : blocks) {
    const offpath_block_t* target = nullptr;
    if (op->what.kind == OFFPATH_EXCHANGE) {
      if (block.peer != op->team->rank) continue;
      const auto meets = [&](const offpath_block_t& own) { return own.peer == peer && own.tag == block.tag; };
      const auto found = std::find_if(op->recv.begin(), op->recv.end(), meets);
      if (found == op->recv.end()) return OFFPATH_ERR_TRUNCATED;
      target = &*found;
    } else if (op->what.kind == OFFPATH_ALLGATHER) {
      target = &op->recv[peer];
    } else if (op->what.kind == OFFPATH_BCAST && !op->recv.empty()) {
      target = &op->recv[0];
    } else if (!reduces(op->what.kind)) {
      continue;
    }
    Bytes data;
    if (!read_block(pid, offer, block, &data)) return OFFPATH_ERR_MEMORY_FAULT;
    if (target == nullptr)
      op->contributions[peer] = std::move(data);
    else if (const auto status = deliver(*op, *target, data); status != OFFPATH_OK)
      return status;
  }
  slot.read_by.fetch_add(1);
  op->done_with[peer] = true;
  return OFFPATH_OK;
}

// Combines the contributions of members 0 to `last` in their order, and keeps this member's part.
offpath_status_t combine(const offpath_op& op) {
  const uint32_t rank = op.team->rank;
  const auto kind = op.what.kind;
  if (op.recv.empty() || (kind == OFFPATH_EXSCAN && rank == 0)) return OFFPATH_OK;
  const uint32_t last = kind == OFFPATH_SCAN ? rank : kind == OFFPATH_EXSCAN ? rank - 1 : op.team->size - 1;
  const offpath::kernels::Reduction reduction{op.what.op, op.what.element};
  if (!offpath::kernels::supported(reduction)) return OFFPATH_ERR_ARGUMENT;
  Bytes result = op.contributions[0];
  for (uint32_t member = 1; member <= last; ++member) {
    offpath::kernels::combine(reduction, result.data(), op.contributions[member].data(), result.data(), result.size());
  }
  if (kind == OFFPATH_REDUCE_SCATTER) {
    const auto begin = std::accumulate(op.counts.begin(), op.counts.begin() + rank, uint64_t{0});
    const auto from = result.begin() + static_cast<ptrdiff_t>(begin);
    result = Bytes(from, from + static_cast<ptrdiff_t>(op.counts[rank]));
  }
  return deliver(op, op.recv[0], result);
}

offpath_status_t test(offpath_op* op) {
  if (op->remote != nullptr) return op->status = fake::test(*op->remote);
  if (op->status != OFFPATH_IN_PROGRESS) return op->status;
  offpath_team* team = op->team;
  fake::Member& own = team->own();
  if (own.lost != 0) {
    return end(op, op->number < own.started ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_ERR_NOT_STARTED);
  }
  if (team->is_parted() && op->number >= team->board->parted - 1) {
    return end(op, fake::parting().begun_here ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
  }
  static const long delay = fake::number_from("OFFPATH_FAKE_DELAY", 3);
  if (++op->tests <= delay) return OFFPATH_IN_PROGRESS;
  // A service that never begins what is waited for is silent, and ended by who waits.
  offpath_session* session = team->session;
  if (session->will_lose && op->number >= session->lose_begun && op->tests > kTestsOfSilence) {
    lose(session, team, session->lose_begun);
    return end(op, OFFPATH_ERR_NOT_STARTED);
  }
  bool all_read = true;
  for (uint32_t peer = 0; peer < team->size; ++peer) {
    if (op->done_with[peer]) continue;
    fake::Member& other = team->board->members[peer];
    if (other.lost != 0) {
      return end(op, op->number < other.started ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
    }
    if (other.visible.load(std::memory_order_acquire) <= op->number) {
      all_read = false;
      continue;
    }
    const auto status = read_offer(op, peer);
    // What was read while the peer lost its service may be anything.
    if (other.lost != 0) return end(op, op->number < other.started ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
    if (status != OFFPATH_OK) return end(op, status);
  }
  if (all_read && own.ring[op->number % fake::kRing].read_by.load() == op->readers) {
    return end(op, reduces(op->what.kind) ? combine(*op) : OFFPATH_OK);
  }
  // No operation of a broken team goes on: others may not post their part any more.
  for (uint32_t peer = 0; peer < team->size; ++peer) {
    const fake::Member& other = team->board->members[peer];
    if (other.lost != 0) return end(op, op->number < other.started ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
  }
  return OFFPATH_IN_PROGRESS;
}

}  // namespace

offpath_op* fake::op_of(offpath_team* team, std::shared_ptr<Remote> remote) {
  auto* op = new offpath_op;
  op->team = team;
  op->remote = std::move(remote);
  return op;
}

offpath_op* fake::op_that_ended(offpath_session* session, offpath_status_t status) {
  static offpath_team nobody;
  nobody.session = session;
  auto* op = new offpath_op;
  op->team = &nobody;
  op->status = status;
  return op;
}

extern "C" {

offpath_status_t offpath_collective(offpath_team_t* team, const offpath_collective_t* what, offpath_op_t** out) {
  static const long post_us = fake::number_from("OFFPATH_FAKE_POST_US", 0);
  if (post_us > 0) usleep(static_cast<useconds_t>(post_us));
  std::lock_guard lock(team->session->mutex);
  if (team->session->lost || offpath_team_broken(team) != 0) return OFFPATH_ERR_NOT_STARTED;
  static const long depth = std::min<long>(fake::number_from("OFFPATH_FAKE_DEPTH", fake::kRing), fake::kRing);
  const auto under_way = std::count(team->in_use.begin(), team->in_use.end(), true);
  if (under_way >= depth || team->in_use[team->posted % fake::kRing]) return OFFPATH_ERR_NO_MEMORY;
  std::unique_ptr<offpath_op> op = copy(*what, team);
  fake::Slot& slot = team->own().ring[op->number % fake::kRing];
  slot.number = op->number;
  slot.offer = reinterpret_cast<uint64_t>(&op->offer);
  slot.read_by = 0;
  team->in_use[op->number % fake::kRing] = true;
  ++team->posted;
  ++team->session->posted;
  const bool losing = team->session->will_lose && team->posted >= team->session->lose_after;
  if (!team->session->will_lose || team->posted <= team->session->lose_begun) {
    team->own().visible.store(team->posted, std::memory_order_release);
    if (team->posted > fake::parting().from) part(*team);
  }
  if (losing) lose(team->session, team, std::min(team->session->lose_begun, team->posted));
  *out = op.release();
  return OFFPATH_OK;
}

offpath_status_t offpath_op_test(offpath_op_t* op) {
  std::lock_guard lock(op->team->session->mutex);
  return test(op);
}

offpath_status_t offpath_op_help(offpath_op_t* op) { return offpath_op_test(op); }

offpath_status_t offpath_op_wait(offpath_op_t* op, uint64_t) {
  for (;;) {
    const offpath_status_t status = offpath_op_test(op);
    if (status != OFFPATH_IN_PROGRESS) return status;
    usleep(20);
  }
}

// Knows no times.
void offpath_session_time_operations(offpath_session_t*, int) {}
void offpath_session_note_wait(offpath_session_t*, uint64_t, uint64_t) {}
offpath_status_t offpath_op_times(offpath_op_t*, offpath_op_times_t*) { return OFFPATH_ERR_STATE; }

void offpath_op_describe(offpath_op_t*, char* text, size_t capacity) { snprintf(text, capacity, "fake"); }

void offpath_op_free(offpath_op_t* op) {
  if (op == nullptr || op->status != OFFPATH_OK) return;  // peers may still read what a failed one offered
  delete op;
}

}  // extern "C"
