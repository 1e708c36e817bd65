// SPDX-License-Identifier: BSD-3-Clause
// SegmentView over a segment in which the input writes words anywhere: whatever they are, every answer lies inside.
// Input: records of 12 bytes, u32 where (top bits: which part of the segment), u64 value.
#include "session/segment_view.hpp"
#include "target.hpp"
#include "../tests/unit/collective/raw.hpp"
#include "../tests/unit/remote/body.hpp"
#include "../tests/unit/session/client_segment.hpp"

#include <cstring>

using namespace offpath::session;

namespace {

struct Word {
  uint32_t where;
  uint64_t value;
};
constexpr size_t kWordBytes = 12;

testing::ClientSegment& segment() {
  static testing::ClientSegment client;
  return client;
}

size_t place(uint32_t where) {
  const size_t at = (where & 0x0FFFFFFF) & ~size_t{7};
  switch (where >> 28) {
    case 0:
      return at % sizeof(SegmentHeader);
    case 1:
      return kRingOffset + at % 256;
    case 2:
      return kSlotsOffset + at % (4 * sizeof(Slot));
    case 3:
      return kArenaOffset + at % 4096;
    case 4:
      return kAliasesOffset + at % (4 * sizeof(AliasRecord));
    default:
      return at % (kSegmentBytes - 8);
  }
}

bool inside(const uint8_t* begin, uint64_t count, const SegmentView& view) {
  const auto* base = reinterpret_cast<const uint8_t*>(&view.header());
  return begin >= base + kArenaOffset && begin + count <= base + kSegmentBytes;
}

void check(const ProgramArguments& arguments) {
  const ProgramRecord& head = arguments.head;
  FUZZ_REQUIRE(arguments.vectors.size() == head.vectors_count && arguments.matrices.size() == head.matrices_count);
  FUZZ_REQUIRE(arguments.before.size() == head.before_count && arguments.after.size() == head.after_count);
  FUZZ_REQUIRE(arguments.statements.size() == head.statements_count && arguments.terms.size() == head.terms_count);
  uint64_t terms = 0;
  for (const StatementRecord& statement : arguments.statements) terms += statement.terms_count;
  FUZZ_REQUIRE(arguments.terms.size() == terms);
}

// One of everything.
std::vector<uint8_t> some_program() {
  const ProgramRecord head{10, 0x7000, 2, 0, 1, 1, 1, 1, 1, 1, 1, 0};
  const uint64_t vector = 0x8000;
  const MatrixRecord matrix{0, 10, 0x9000, 0xA000, 0xB000, 30, 10, 0, 0};
  const ScalarStepRecord steps[2] = {{1, 0, 0, 0}, {2, 1, 0, 1}};
  const StatementRecord statement{1, 0, 1, 0};
  const TermRecord term{0, 0};
  std::vector<uint8_t> out;
  const auto add = [&](const auto& part) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&part);
    out.insert(out.end(), bytes, bytes + sizeof(part));
  };
  add(head), add(vector), add(matrix), add(steps), add(statement), add(term);
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  segment().fill_header();
  std::vector<size_t> touched;
  uint64_t last = 0;
  for (size_t i = 0; i + kWordBytes <= bytes && i < 64 * kWordBytes; i += kWordBytes) {
    Word word{};
    memcpy(&word.where, data + i, 4);
    memcpy(&word.value, data + i + 4, 8);
    touched.push_back(place(word.where));
    memcpy(segment().memory.data() + touched.back(), &word.value, 8);
    last = word.value;
  }
  auto view = SegmentView::open(segment().other_mapping());
  if (view.ok()) {
    if (const auto aliases = view->take_aliases()) {
      for (const AliasRecord& alias : *aliases) {
        FUZZ_REQUIRE(alias.bytes <= view->shared_bytes() && alias.offset <= view->shared_bytes() - alias.bytes);
      }
    }
    for (int i = 0; i < 8; ++i) {
      const auto index = view->take_submission();
      if (!index) break;
      FUZZ_REQUIRE(*index < kSlotCount);
      const Slot& slot = view->slot(*index);
      const auto team = view->team_arguments(slot.team);
      if (team.ok()) {
        FUZZ_REQUIRE(team->rank < team->size && team->addresses.size() == size_t{team->size} * team->address_stride);
      }
      const auto record = view->record(slot);
      FUZZ_REQUIRE(record.empty() || inside(record.data(), record.size(), view.value()));
      if (const auto got = offpath::collective::decode(record); got.ok())
        FUZZ_REQUIRE(encode(got.value()).size() <= record.size());
      if (const auto got = offpath::remote::decode_origin(record); got.ok()) {
        std::vector<uint8_t> again;
        encode(got.value(), again);
        FUZZ_REQUIRE(again.size() <= record.size());
      }
      const auto program = view->program_arguments(slot);
      if (program.ok()) check(program.value());
      view->finish(*index, OFFPATH_OK);
    }
    for (const uint64_t offset : {last, last & 0x3FFFFFF, kSegmentBytes - (last & 127)}) {
      if (const uint8_t* got = view->bytes_at(offset, last >> 32)) FUZZ_REQUIRE(inside(got, last >> 32, view.value()));
      if (const TeamRecord* got = view->team_record(offset)) {
        FUZZ_REQUIRE(inside(reinterpret_cast<const uint8_t*>(got), sizeof(TeamRecord), view.value()));
      }
      if (const WindowRecord* got = view->window_record(offset)) {
        FUZZ_REQUIRE(inside(reinterpret_cast<const uint8_t*>(got), sizeof(WindowRecord), view.value()));
      }
      [[maybe_unused]] const auto team = view->team_arguments(offset);
    }
  }
  memset(segment().memory.data(), 0, sizeof(SegmentHeader));
  for (uint32_t i = 0; i < 4; ++i) memset(segment().memory.data() + kSlotsOffset + i * sizeof(Slot), 0, sizeof(Slot));
  for (const size_t at : touched) memset(segment().memory.data() + at, 0, 8);
  return 0;
}

std::vector<std::vector<uint8_t>> fuzz_seeds() {
  const auto pack = [](const std::vector<Word>& words) {
    std::vector<uint8_t> out;
    for (const Word& word : words) {
      const auto* where = reinterpret_cast<const uint8_t*>(&word.where);
      const auto* value = reinterpret_cast<const uint8_t*>(&word.value);
      out.insert(out.end(), where, where + 4);
      out.insert(out.end(), value, value + 8);
    }
    return out;
  };
  constexpr uint32_t kSlot = 0x20000000, kArena = 0x30000000, kRing = 0x10000000;
  const auto operation = [&](uint64_t kind, std::vector<uint8_t> record) {
    std::vector<Word> words{{64, 1}, {kRing, 0}, {kSlot, kind << 32 | 1}, {kSlot + 32, kArenaOffset + 1024}};
    record.resize((record.size() + 7) / 8 * 8);
    for (uint32_t i = 0; i < record.size(); i += 8) {
      words.push_back({kArena + 1024 + i, 0});
      memcpy(&words.back().value, &record[i], 8);
    }
    return pack(words);
  };
  return {
      operation(3, encode(offpath::collective::testing::some())),
      operation(9, some_program()),
      operation(8, encode(offpath::remote::testing::some())),
      pack({{64, 1},
            {kRing, 0},
            {kSlot + 16, kArenaOffset},
            {kSlot, 0x100000001},
            {kArena + 16, 0x400000001},
            {kArena + 24, 64},
            {kArena + 40, kArenaOffset + 512},
            {kArena + 48, kArenaOffset + 768}}),
      pack({{64, 3}, {kRing, 0x100000000}, {kRing + 8, 2}, {kSlot + 128, 0x300000001}}),
      pack({{64, UINT64_MAX}, {128, UINT64_MAX - 1}, {kRing + 248, UINT64_MAX}}),
      {},
  };
}
