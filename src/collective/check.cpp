// SPDX-License-Identifier: BSD-3-Clause
#include "collective/collective.hpp"

#include "base/limits.hpp"
#include "base/words.hpp"

#include <algorithm>

namespace offpath::collective {
namespace {

using base::Status;

constexpr auto kRefused = OFFPATH_ERR_ARGUMENT;

using Ull = unsigned long long;  // for printf

// Adds; false where the sum leaves what 64 bits hold.
bool add(uint64_t& sum, uint64_t more) { return !__builtin_add_overflow(sum, more, &sum); }

Status check_layouts(const std::vector<memory::Layout>& layouts) {
  for (const memory::Layout& layout : layouts) {
    if (const Status status = memory::check_layout(layout); !status.ok()) return status;
  }
  return {};
}

Status check_blocks(const std::vector<Block>& blocks, const Collective& collective, uint32_t size) {
  uint64_t sum = 0;
  for (const Block& block : blocks) {
    if (block.layout > collective.layouts.size()) {
      return Status::error(kRefused, "a block names a layout that was not given. Name one of the %zu layouts",
                           collective.layouts.size());
    }
    if (block.bytes >= base::kBlockLimitBytes || !add(sum, block.bytes)) {
      return Status::error(kRefused, "a block of %llu bytes is too long (the limit is 64 TiB). Split it",
                           static_cast<Ull>(block.bytes));
    }
    uint64_t end = block.address;
    if (block.layout == 0 && !add(end, block.bytes)) {
      return Status::error(kRefused, "a block ends beyond the last address. Check its address and length");
    }
    if (block.peer >= size) {
      return Status::error(kRefused, "a block is for member %u of a team of %u. Name one of its members", block.peer,
                           size);
    }
  }
  return {};
}

Status check_counts(const Collective& collective, size_t send, size_t recv) {
  if (collective.send.size() == send && collective.recv.size() == recv) return {};
  return Status::error(kRefused,
                       "%zu send and %zu receive blocks (this collective takes %zu and %zu here). Pass as many",
                       collective.send.size(), collective.recv.size(), send, recv);
}

std::vector<const Block*> by_peer_and_tag(const std::vector<Block>& blocks) {
  std::vector<const Block*> sorted;
  sorted.reserve(blocks.size());
  for (const Block& block : blocks) sorted.push_back(&block);
  std::sort(sorted.begin(), sorted.end(),
            [](const Block* a, const Block* b) { return std::pair(a->peer, a->tag) < std::pair(b->peer, b->tag); });
  return sorted;
}

Status check_tags(const std::vector<const Block*>& sorted) {
  if (std::any_of(sorted.begin(), sorted.end(), [](const Block* block) { return block->tag == kReservedTag; })) {
    return Status::error(kRefused, "a block has the tag %u (which the services need). Number the blocks from 0 on",
                         kReservedTag);
  }
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end(), [](const Block* a, const Block* b) {
    return a->peer == b->peer && a->tag == b->tag;
  });
  if (twice == sorted.end()) return {};
  return Status::error(kRefused, "two blocks for member %u have the tag %u (nothing tells them apart). Number them",
                       (*twice)->peer, (*twice)->tag);
}

Status check_exchange(const Collective& collective, uint32_t rank) {
  const auto send = by_peer_and_tag(collective.send);
  const auto recv = by_peer_and_tag(collective.recv);
  if (const Status status = check_tags(send); !status.ok()) return status;
  if (const Status status = check_tags(recv); !status.ok()) return status;
  // Both ends of own blocks are known here; the engine finds out about all others.
  const auto before = [](const Block* a, const Block* b) {
    return std::pair(a->peer, a->tag) < std::pair(b->peer, b->tag);
  };
  for (const Block* from : send) {
    if (from->peer != rank || from->bytes == 0) continue;
    const auto to = std::lower_bound(recv.begin(), recv.end(), from, before);
    if (to == recv.end() || (*to)->peer != rank || (*to)->tag != from->tag || (*to)->bytes < from->bytes) {
      return Status::error(OFFPATH_ERR_TRUNCATED,
                           "own block %u of %llu bytes has no receive block that takes it. Pass one", from->tag,
                           static_cast<Ull>(from->bytes));
    }
  }
  return {};
}

// Equal lengths where both sides exist.
Status check_equal(const Block& send, const Block& recv, offpath_status_t too_short = kRefused) {
  if (send.bytes == recv.bytes) return {};
  return Status::error(recv.bytes < send.bytes ? too_short : kRefused,
                       "the send block has %llu bytes and its receive block %llu (they must agree). Pass equal lengths",
                       static_cast<Ull>(send.bytes), static_cast<Ull>(recv.bytes));
}

Status check_reduction(const Collective& collective) {
  const kernels::Reduction& reduction = collective.reduction;
  if (!kernels::supported(reduction) || kernels::one_sided_only(reduction.op)) {
    return Status::error(kRefused, "operator %d is not defined on element type %d. See offpath.h",
                         static_cast<int>(reduction.op), static_cast<int>(reduction.element));
  }
  const uint64_t element = kernels::element_bytes(reduction.element);
  const auto is_whole = [&](uint64_t bytes) { return bytes % element == 0; };
  const auto fits = [&](const Block& block) { return block.layout == 0 && is_whole(block.bytes); };
  if (std::all_of(collective.send.begin(), collective.send.end(), fits) &&
      std::all_of(collective.recv.begin(), collective.recv.end(), fits) &&
      std::all_of(collective.counts_bytes.begin(), collective.counts_bytes.end(), is_whole)) {
    return {};
  }
  return Status::error(kRefused,
                       "a block to reduce is not made of whole elements of %llu bytes, one after the other. Pack it",
                       static_cast<Ull>(element));
}

Status check_reduce_scatter(const Collective& collective, uint32_t rank, uint32_t size) {
  if (const Status status = check_counts(collective, 1, 1); !status.ok()) return status;
  if (collective.counts_bytes.size() != size) {
    return Status::error(kRefused, "%zu counts for a team of %u. Pass one per member", collective.counts_bytes.size(),
                         size);
  }
  uint64_t sum = 0;
  for (const uint64_t count : collective.counts_bytes) {
    if (!add(sum, count)) return Status::error(kRefused, "the counts add up to more than memory. Check them");
  }
  if (sum != collective.send.front().bytes || collective.counts_bytes[rank] != collective.recv.front().bytes) {
    return Status::error(kRefused,
                         "the counts add up to %llu bytes, the send block has %llu (counts must describe both blocks). "
                         "Check them",
                         static_cast<Ull>(sum), static_cast<Ull>(collective.send.front().bytes));
  }
  return {};
}

Status check_kind(const Collective& collective, uint32_t rank, uint32_t size) {
  const bool has_root = collective.kind == OFFPATH_BCAST || collective.kind == OFFPATH_REDUCE;
  if (has_root && collective.root >= size) {
    return Status::error(kRefused, "the root is member %u of a team of %u. Name one of its members", collective.root,
                         size);
  }
  const bool is_root = collective.root == rank;
  Status status;
  switch (collective.kind) {
    case OFFPATH_EXCHANGE:
      return check_exchange(collective, rank);
    case OFFPATH_BARRIER:
      return check_counts(collective, 0, 0);
    case OFFPATH_BCAST:
      return is_root ? check_counts(collective, 1, 0) : check_counts(collective, 0, 1);
    case OFFPATH_ALLGATHER:
      status = check_counts(collective, 1, size);
      return status.ok() ? check_equal(collective.send.front(), collective.recv[rank], OFFPATH_ERR_TRUNCATED) : status;
    case OFFPATH_REDUCE:
      status = check_counts(collective, 1, is_root ? 1 : 0);
      return status.ok() && is_root ? check_equal(collective.send.front(), collective.recv.front()) : status;
    case OFFPATH_ALLREDUCE:
    case OFFPATH_SCAN:
    case OFFPATH_EXSCAN:
      status = check_counts(collective, 1, 1);
      return status.ok() ? check_equal(collective.send.front(), collective.recv.front()) : status;
    case OFFPATH_REDUCE_SCATTER:
      return check_reduce_scatter(collective, rank, size);
  }
  return Status::error(kRefused, "collective kind %d is not known. See offpath.h", static_cast<int>(collective.kind));
}

}  // namespace

Status check(const Collective& collective, uint32_t rank, uint32_t size) {
  Status status = check_layouts(collective.layouts);
  if (status.ok()) status = check_blocks(collective.send, collective, size);
  if (status.ok()) status = check_blocks(collective.recv, collective, size);
  if (status.ok()) status = check_kind(collective, rank, size);
  if (status.ok() && collective.kind >= OFFPATH_REDUCE) status = check_reduction(collective);
  return status;
}

const char* name_of(offpath_collective_kind_t kind) { return base::text_of(kind); }

}  // namespace offpath::collective
