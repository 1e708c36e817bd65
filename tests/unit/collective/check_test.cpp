// SPDX-License-Identifier: BSD-3-Clause
// What a broken or hostile client may ask for is refused, each kind of nonsense by itself.
#include "collective/collective.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace offpath::collective {
namespace {

constexpr uint32_t kRank = 1, kSize = 3;
constexpr uint64_t kSend = 1 << 20;
constexpr uint64_t kRecv = 2 << 20;

Block block(uint64_t address, uint64_t bytes, uint32_t peer = 0, uint32_t tag = 0) {
  return {peer, tag, address, bytes};
}

// Right arguments of member 1 of 3.
Collective good(offpath_collective_kind_t kind) {
  Collective c;
  c.kind = kind;
  c.root = 1;
  if (kind >= OFFPATH_REDUCE) c.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_F64};
  if (kind != OFFPATH_BARRIER) c.send = {block(kSend, 240)};
  switch (kind) {
    case OFFPATH_EXCHANGE:
      c.send = {block(kSend, 80, 0, 0), block(kSend, 80, 0, 1), block(kSend, 80, 1, 7)};
      c.recv = {block(kRecv, 80, 2, 0), block(kRecv, 100, 1, 7), block(kRecv, 80, 2, 3)};
      break;
    case OFFPATH_ALLGATHER:
      c.recv = {block(kRecv, 8), block(kRecv, 240), block(kRecv, 0)};
      break;
    case OFFPATH_REDUCE_SCATTER:
      c.counts_bytes = {80, 120, 40};
      c.recv = {block(kRecv, 120)};
      break;
    case OFFPATH_BARRIER:
    case OFFPATH_BCAST:
      break;
    default:
      c.recv = {block(kRecv, 240)};
  }
  return c;
}

struct Nonsense {
  const char* name;
  std::vector<offpath_collective_kind_t> kinds;
  std::function<void(Collective&)> spoil;
};

const std::vector<offpath_collective_kind_t> kAll = {OFFPATH_EXCHANGE,       OFFPATH_BARRIER, OFFPATH_BCAST,
                                                     OFFPATH_ALLGATHER,      OFFPATH_REDUCE,  OFFPATH_ALLREDUCE,
                                                     OFFPATH_REDUCE_SCATTER, OFFPATH_SCAN,    OFFPATH_EXSCAN};
const std::vector<offpath_collective_kind_t> kReductions = {OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER,
                                                            OFFPATH_SCAN, OFFPATH_EXSCAN};
const std::vector<offpath_collective_kind_t> kWithSend = {OFFPATH_EXCHANGE, OFFPATH_BCAST,     OFFPATH_ALLGATHER,
                                                          OFFPATH_REDUCE,   OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER,
                                                          OFFPATH_SCAN,     OFFPATH_EXSCAN};
const std::vector<offpath_collective_kind_t> kPairs = {OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_SCAN, OFFPATH_EXSCAN};

const memory::Layout kGoodLayout{8, 16, {{0, 4}, {12, 4}}};

const Nonsense kNonsense[] = {
    {"unknown kind", kAll, [](Collective& c) { c.kind = static_cast<offpath_collective_kind_t>(10); }},
    {"kind 0", kAll, [](Collective& c) { c.kind = static_cast<offpath_collective_kind_t>(0); }},
    {"root outside", {OFFPATH_BCAST, OFFPATH_REDUCE}, [](Collective& c) { c.root = 3; }},
    {"huge root", {OFFPATH_BCAST, OFFPATH_REDUCE}, [](Collective& c) { c.root = UINT32_MAX; }},
    {"blocks of the root elsewhere", {OFFPATH_BCAST, OFFPATH_REDUCE}, [](Collective& c) { c.root = 0; }},
    {"peer outside", kWithSend, [](Collective& c) { c.send[0].peer = 3; }},
    {"receive peer outside", {OFFPATH_EXCHANGE, OFFPATH_ALLREDUCE}, [](Collective& c) { c.recv[0].peer = 3; }},
    {"a send block too many",
     {OFFPATH_BARRIER, OFFPATH_BCAST, OFFPATH_ALLGATHER, OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER,
      OFFPATH_SCAN, OFFPATH_EXSCAN},
     [](Collective& c) { c.send.push_back(block(kSend, 240)); }},
    {"a receive block too many",
     {OFFPATH_BARRIER, OFFPATH_BCAST, OFFPATH_ALLGATHER, OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER,
      OFFPATH_SCAN, OFFPATH_EXSCAN},
     [](Collective& c) { c.recv.push_back(block(kRecv, 240)); }},
    {"no send block",
     {OFFPATH_BCAST, OFFPATH_ALLGATHER, OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER, OFFPATH_SCAN,
      OFFPATH_EXSCAN},
     [](Collective& c) { c.send.clear(); }},
    {"no receive block",
     {OFFPATH_ALLGATHER, OFFPATH_REDUCE, OFFPATH_ALLREDUCE, OFFPATH_REDUCE_SCATTER, OFFPATH_SCAN, OFFPATH_EXSCAN},
     [](Collective& c) { c.recv.clear(); }},
    {"too long a block", kWithSend, [](Collective& c) { c.send[0].bytes = uint64_t{1} << 46; }},
    {"a block that wraps", kWithSend, [](Collective& c) { c.send[0].address = UINT64_MAX - 3; }},
    {"a layout far away", kWithSend, [](Collective& c) { c.send[0].layout = UINT32_MAX; }},
    {"a layout that is not there", kWithSend, [](Collective& c) { c.send[0].layout = 1; }},
    {"an empty layout", kAll,
     [](Collective& c) {
       c.layouts = {{0, 16, {}}};
     }},
    {"a layout of empty ranges", kAll,
     [](Collective& c) {
       c.layouts = {{0, 16, {{0, 0}}}};
     }},
    {"a layout that claims more", kAll,
     [](Collective& c) {
       c.layouts = {{9, 16, {{0, 4}, {12, 4}}}};
     }},
    {"a layout that overflows", kAll,
     [](Collective& c) {
       c.layouts = {{8, 16, {{0, UINT64_MAX}, {12, 9}}}};
     }},
    {"sum of blocks overflows",
     {OFFPATH_EXCHANGE},
     [](Collective& c) {
       c.recv.clear();
       for (uint32_t tag = 0; tag < (1U << 18) + 1; ++tag) {
         c.recv.push_back(block(0, (uint64_t{1} << 46) - 1, 0, tag));
       }
     }},
    {"a send tag twice", {OFFPATH_EXCHANGE}, [](Collective& c) { c.send[1].tag = 0; }},
    {"a receive tag twice", {OFFPATH_EXCHANGE}, [](Collective& c) { c.recv[2].tag = 0; }},
    {"own block without a target", {OFFPATH_EXCHANGE}, [](Collective& c) { c.send[2].tag = 8; }},
    {"own block too long for its target", {OFFPATH_EXCHANGE}, [](Collective& c) { c.send[2].bytes = 101; }},
    {"own blocks differ", {OFFPATH_ALLGATHER}, [](Collective& c) { c.recv[1].bytes = 239; }},
    {"send and receive differ", kPairs, [](Collective& c) { c.recv[0].bytes = 232; }},
    {"no operator", kReductions, [](Collective& c) { c.reduction.op = OFFPATH_OP_NONE; }},
    {"unknown operator", kReductions, [](Collective& c) { c.reduction.op = static_cast<offpath_operator_t>(15); }},
    {"unknown element", kReductions, [](Collective& c) { c.reduction.element = static_cast<offpath_element_t>(31); }},
    {"a one-sided operator", kReductions, [](Collective& c) { c.reduction.op = OFFPATH_OP_REPLACE; }},
    {"another one", kReductions, [](Collective& c) { c.reduction.op = OFFPATH_OP_NO_OP; }},
    {"an operator the element has not", kReductions, [](Collective& c) { c.reduction.op = OFFPATH_OP_BXOR; }},
    {"half an element", kPairs, [](Collective& c) { c.send[0].bytes = c.recv[0].bytes = 236; }},
    {"half an element in the counts",
     {OFFPATH_REDUCE_SCATTER},
     [](Collective& c) {
       c.counts_bytes = {84, 120, 36};
     }},
    {"a layout in a reduction", kReductions,
     [](Collective& c) {
       c.layouts = {kGoodLayout};
       c.send[0].layout = 1;
     }},
    {"a result through a layout", kReductions,
     [](Collective& c) {
       c.layouts = {kGoodLayout};
       c.recv[0].layout = 1;
     }},
    {"counts missing", {OFFPATH_REDUCE_SCATTER}, [](Collective& c) { c.counts_bytes.pop_back(); }},
    {"counts that do not add up", {OFFPATH_REDUCE_SCATTER}, [](Collective& c) { c.counts_bytes[0] += 8; }},
    {"counts that overflow",
     {OFFPATH_REDUCE_SCATTER},
     [](Collective& c) {
       c.counts_bytes = {UINT64_MAX - 39, 120, 160};
     }},
    {"own count is another",
     {OFFPATH_REDUCE_SCATTER},
     [](Collective& c) {
       c.counts_bytes = {120, 80, 40};
     }},
};

TEST(Check, TakesWhatIsRight) {
  for (const auto kind : kAll) {
    Collective c = good(kind);
    EXPECT_TRUE(check(c, kRank, kSize).ok()) << kind << ": " << check(c, kRank, kSize).text();
    c.layouts = {kGoodLayout};
    EXPECT_TRUE(check(c, kRank, kSize).ok()) << kind << ": " << check(c, kRank, kSize).text();
    if (kind == OFFPATH_BCAST || kind == OFFPATH_EXCHANGE || kind == OFFPATH_ALLGATHER) {
      c.send[0].layout = 1;
      EXPECT_TRUE(check(c, kRank, kSize).ok()) << kind << ": " << check(c, kRank, kSize).text();
    }
  }
}

TEST(Check, RefusesEachKindOfNonsense) {
  for (const Nonsense& nonsense : kNonsense) {
    for (const auto kind : nonsense.kinds) {
      Collective c = good(kind);
      nonsense.spoil(c);
      const base::Status status = check(c, kRank, kSize);
      const bool own = std::string(nonsense.name).starts_with("own block");
      EXPECT_EQ(status.code(), own ? OFFPATH_ERR_TRUNCATED : OFFPATH_ERR_ARGUMENT)
          << nonsense.name << ", kind " << kind;
      EXPECT_STRNE(status.text(), "") << nonsense.name;
    }
  }
}

}  // namespace
}  // namespace offpath::collective
