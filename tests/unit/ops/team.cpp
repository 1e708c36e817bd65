// SPDX-License-Identifier: BSD-3-Clause
#include "team.hpp"

#include <algorithm>

namespace offpath::testing {

using ops::Block;
using ops::Collective;

std::string Case::text() const {
  std::string text = "kind " + std::to_string(kind) + " algorithm " + std::to_string(algorithm) + " bytes " +
                     std::to_string(bytes) + " root " + std::to_string(root) + " nodes";
  for (const uint64_t key : node_keys) text += " " + std::to_string(key);
  text += in_place ? " in place" : "";
  text += layouts ? " layouts" : "";
  text += equal ? "" : " unequal";
  text += copy_own_blocks ? "" : " own blocks left";
  return text + " window " + std::to_string(tuning.window) + " scratch " + std::to_string(tuning.scratch_bytes) +
         " segments " + std::to_string(tuning.segments_max) + " pairwise " + std::to_string(tuning.pairwise_nodes);
}

Team::Team(const Case& c, uint64_t seed)
    : collectives(c.node_keys.size()),
      machines(c.node_keys.size()),
      case_(c),
      random_(seed),
      size_(static_cast<uint32_t>(c.node_keys.size())) {
  std::vector<uint64_t> counts;
  for (uint32_t i = 0; i < size_; ++i) {
    const uint64_t unequal = random_() % 3 == 0 ? 0 : (random_() % (2 * c.bytes + 1)) / kElementBytes * kElementBytes;
    counts.push_back(c.equal ? c.bytes : unequal);
  }
  for (uint32_t member = 0; member < size_; ++member) {
    machines[member].topology = ops::Topology::make(member, c.node_keys);
    Collective& collective = collectives[member];
    collective.kind = c.kind;
    collective.algorithm = c.algorithm;
    collective.root = c.root;
    collective.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_U64};  // the interpreter has its own idea of a sum
    if (!c.copy_own_blocks) collective.own_blocks = collective::OwnBlocks::by_client;
    if (c.kind == OFFPATH_ALLGATHER) {
      make_allgather(member, counts);
    } else if (c.kind == OFFPATH_REDUCE_SCATTER) {
      make_reduce_scatter(member, counts);
    } else if (c.kind != OFFPATH_BARRIER && c.kind != OFFPATH_EXCHANGE) {
      make_rooted_or_vector(member);
    }
  }
  if (c.kind == OFFPATH_EXCHANGE) make_exchange();
  for (Machine& machine : machines) {
    machine.memory.resize(machine.memory.size() + 16);
    for (uint8_t& byte : machine.memory) byte = static_cast<uint8_t>(random_());
    expected_.push_back(machine.memory);
  }
  expect();
}

std::string Team::run(uint64_t seed) {
  for (uint32_t member = 0; member < size_; ++member) {
    const base::Status status = check(collectives[member], member, size_);
    if (!status.ok()) return std::string("check: ") + status.text();
    machines[member].graph = ops::expand(collectives[member], machines[member].topology, case_.tuning);
  }
  Interpreter interpreter(machines, case_.combine, seed);
  if (const std::string problem = interpreter.run(); !problem.empty()) return problem;
  if (interpreter.short_pulls() + interpreter.empty_pulls() != short_blocks_) return "a pull got less than it should";
  for (uint32_t node = 0; node < machines[0].topology.nodes(); ++node) {
    wire_bytes_[node] = interpreter.wire_bytes_into(node);
  }
  for (uint32_t member = 0; member < size_; ++member) {
    if (machines[member].memory != expected_[member]) return "wrong bytes in the memory of " + std::to_string(member);
  }
  return {};
}

Block Team::place(uint32_t member, uint64_t bytes, bool layout, uint32_t peer, uint32_t tag) {
  std::vector<uint8_t>& memory = machines[member].memory;
  const uint64_t base = memory.size() + 1 + random_() % 16;
  if (!layout || random_() % 4 == 0) {
    memory.resize(base + bytes);
    return {peer, tag, kClientBase + base, bytes};
  }
  graph::Layout made;
  int64_t end = 0;
  const uint64_t ranges_count = 1 + random_() % 3;
  for (uint64_t i = 0; i < ranges_count; ++i) {
    const memory::Range range{end + static_cast<int64_t>(random_() % 4), 1 + random_() % 13};
    made.ranges.push_back(range);
    made.size_bytes += range.bytes;
    end = range.offset + static_cast<int64_t>(range.bytes);
  }
  std::shuffle(made.ranges.begin(), made.ranges.end(), random_);
  made.extent_bytes = end + static_cast<int64_t>(random_() % 5);
  memory.resize(base + (bytes / made.size_bytes + 1) * static_cast<uint64_t>(made.extent_bytes));
  auto& layouts = collectives[member].layouts;
  layouts.push_back(made);
  return {peer, tag, kClientBase + base, bytes, static_cast<uint32_t>(layouts.size())};
}

void Team::make_exchange() {
  for (uint32_t from = 0; from < size_; ++from) {
    for (uint32_t to = 0; to < size_; ++to) {
      for (uint32_t blocks = static_cast<uint32_t>(random_() % 3), tag = 0; blocks > 0; --blocks) {
        tag += 1 + static_cast<uint32_t>(random_() % 3);
        const uint64_t room = random_() % 5 == 0 ? 0 : random_() % (case_.bytes + 1);
        const uint64_t sent = random_() % 3 == 0 ? random_() % (room + 1) : room;
        collectives[to].recv.push_back(place(to, room, case_.layouts, from, tag));
        const bool sends = random_() % 5 != 0;
        if (sends) collectives[from].send.push_back(place(from, sent, case_.layouts, to, tag));
        short_blocks_ += from != to && room > 0 && (!sends || sent < room);
      }
    }
  }
  for (Collective& collective : collectives) {
    std::shuffle(collective.send.begin(), collective.send.end(), random_);
    std::shuffle(collective.recv.begin(), collective.recv.end(), random_);
  }
}

void Team::make_rooted_or_vector(uint32_t member) {
  Collective& collective = collectives[member];
  const bool is_root = member == case_.root;
  const bool bcast = case_.kind == OFFPATH_BCAST;
  if (!bcast || is_root) collective.send.push_back(place(member, case_.bytes, bcast && case_.layouts));
  const bool receives = bcast ? !is_root : case_.kind != OFFPATH_REDUCE || is_root;
  if (!receives) return;
  const bool in_place = case_.in_place && !bcast;
  collective.recv.push_back(in_place ? collective.send[0] : place(member, case_.bytes, bcast && case_.layouts));
}

void Team::make_allgather(uint32_t member, const std::vector<uint64_t>& counts) {
  Collective& collective = collectives[member];
  collective.send.push_back(place(member, counts[member], case_.layouts));
  for (uint32_t from = 0; from < size_; ++from) {
    const bool own = from == member && case_.in_place;
    collective.recv.push_back(own ? collective.send[0] : place(member, counts[from], case_.layouts));
  }
}

void Team::make_reduce_scatter(uint32_t member, const std::vector<uint64_t>& counts) {
  Collective& collective = collectives[member];
  uint64_t total = 0;
  for (const uint64_t count : counts) total += count;
  collective.counts_bytes = counts;
  collective.send.push_back(place(member, total, false));
  collective.recv.push_back(case_.in_place ? collective.send[0] : place(member, counts[member], false));
  collective.recv[0].bytes = counts[member];
}

std::vector<uint8_t> Team::content(uint32_t member, const Block& block) const {
  std::vector<uint8_t> bytes;
  for (uint64_t i = 0; i < block.bytes; ++i) {
    bytes.push_back(machines[member].memory[locate(collectives[member].layouts, graph::place_of(block), i).at]);
  }
  return bytes;
}

// What the send blocks of members first..last give, in rank order.
std::vector<uint8_t> Team::combined(uint32_t first, uint32_t last) const {
  std::vector<uint8_t> sum = content(first, collectives[first].send[0]);
  for (uint32_t member = first + 1; member <= last; ++member) {
    const std::vector<uint8_t> more = content(member, collectives[member].send[0]);
    for (size_t i = 0; i < sum.size(); i += kElementBytes) {
      uint64_t left = 0;
      uint64_t right = 0;
      std::memcpy(&left, &sum[i], kElementBytes);
      std::memcpy(&right, &more[i], kElementBytes);
      left = case_.combine(left, right);
      std::memcpy(&sum[i], &left, kElementBytes);
    }
  }
  return sum;
}

void Team::expect_block(uint32_t member, const Block& block, const std::vector<uint8_t>& bytes) {
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    expected_[member][locate(collectives[member].layouts, graph::place_of(block), i).at] = bytes[i];
  }
}

void Team::expect() {
  const bool reduces = case_.kind >= OFFPATH_REDUCE;
  for (uint32_t member = 0; member < size_; ++member) {
    const Collective& collective = collectives[member];
    for (uint32_t i = 0; i < collective.recv.size(); ++i) {
      const Block& block = collective.recv[i];
      if (case_.kind == OFFPATH_BCAST) {
        expect_block(member, block, content(case_.root, collectives[case_.root].send[0]));
      } else if (case_.kind == OFFPATH_ALLGATHER) {
        if (i != member || case_.copy_own_blocks) expect_block(member, block, content(i, collectives[i].send[0]));
      } else if (case_.kind == OFFPATH_EXCHANGE) {
        for (const Block& sent : collectives[block.peer].send) {
          const bool meets = sent.peer == member && sent.tag == block.tag;
          if (!meets || (block.peer == member && !case_.copy_own_blocks)) continue;
          expect_block(member, block, content(block.peer, sent));
        }
      } else if (case_.kind == OFFPATH_REDUCE_SCATTER) {
        const std::vector<uint8_t> all = combined(0, size_ - 1);
        uint64_t offset = 0;
        for (uint32_t before = 0; before < member; ++before) offset += collective.counts_bytes[before];
        const auto begin = all.begin() + static_cast<int64_t>(offset);
        expect_block(member, block, std::vector<uint8_t>(begin, begin + static_cast<int64_t>(block.bytes)));
      } else if (reduces && !(case_.kind == OFFPATH_EXSCAN && member == 0)) {
        const bool prefix = case_.kind == OFFPATH_SCAN || case_.kind == OFFPATH_EXSCAN;
        const uint32_t last = !prefix ? size_ - 1 : case_.kind == OFFPATH_SCAN ? member : member - 1;
        expect_block(member, block, combined(0, last));
      }
    }
  }
}

}  // namespace offpath::testing
