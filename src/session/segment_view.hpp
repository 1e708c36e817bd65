// SPDX-License-Identifier: BSD-3-Clause
// SegmentView: a service's checked view of a client's session segment. Every offset that comes out of the segment is
// checked against its size before it is used; values that are used twice are copied first.
#pragma once

#include "base/memfd.hpp"
#include "session/layout.hpp"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace offpath::session {

// A TeamRecord copied out of the segment.
struct TeamArguments {
  uint8_t id[16];
  uint32_t rank;
  uint32_t size;
  uint32_t address_stride;
  char compress[kCompressBytes];
  std::vector<uint8_t> addresses;    // a multiple of address_stride
  std::vector<uint32_t> address_of;  // by member, less than there are
};

// A vector program's record copied out of the segment. Only its shape is checked; what the values mean is up to ops/.
struct ProgramArguments {
  ProgramRecord head;
  std::vector<uint64_t> vectors;
  std::vector<MatrixRecord> matrices;
  std::vector<ScalarStepRecord> before, after;
  std::vector<StatementRecord> statements;
  std::vector<TermRecord> terms;  // exactly as many as the statements count together
  std::vector<uint32_t> in, out;
};

// Is it one of the operations that the counters in the segment are about?
enum class Counted : uint8_t { no, yes };

class SegmentView {
 public:
  // Takes the mapping; errors when header values are not what layout.hpp says.
  static base::Result<SegmentView> open(base::Memfd memory);

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(mapping_->data()); }
  Slot& slot(uint32_t index) const;  // index < kSlotCount
  // The next submitted slot index, or nothing. Errors (a wild index) disable the ring for ever.
  std::optional<uint32_t> take_submission();
  // The ring held nonsense: the client is broken or hostile.
  bool corrupt() const { return corrupt_; }

  // Null when the offset is not a team record inside the arena.
  TeamRecord* team_record(uint64_t offset) const;
  base::Result<TeamArguments> team_arguments(uint64_t offset) const;
  // From there to the end of the arena; nothing if it is not in it. The client may change the bytes at any time.
  std::span<const uint8_t> bytes_from(uint64_t offset) const;
  std::span<const uint8_t> record(const Slot& slot) const { return bytes_from(slot.record); }
  // Null when the offset is not a window record inside the arena.
  WindowRecord* window_record(uint64_t offset) const;
  base::Result<ProgramArguments> program_arguments(const Slot& slot) const;

  // The memory that client and service share for data, as it was at open(); the mapping keeps it there.
  uint64_t shared_address() const { return shared_address_; }
  uint64_t shared_bytes() const { return mapping_->bytes() - kSegmentBytes; }
  uint8_t* shared_data() const { return mapping_->data() + kSegmentBytes; }
  std::shared_ptr<const base::Memfd> mapping() const { return mapping_; }

  // The client's aliases, by address, if it has changed them since the last call. They lie in the shared memory and do not
  // overlap in the client; of a table that is being written, or nonsense, there are none.
  std::optional<std::vector<AliasRecord>> take_aliases();

  // u8[count] inside the arena, or null.
  uint8_t* bytes_at(uint64_t offset, uint64_t count) const;
  // u32[count] inside the arena, or null. The client reads them at any time.
  Atomic32* counters_at(uint64_t offset, uint64_t count) const;

  // It is under way; its first byte was moved. When is noted in timed slots.
  static void note_start(Slot& slot);
  static void note_first_byte(Slot& slot);
  // Ends the operation and tells so.
  void finish(uint32_t slot_index, offpath_status_t status, Counted counted = Counted::yes);
  // Something has happened that a client may wait for. It sees that unless it sleeps already: wake() follows, before
  // the worker sleeps itself; once for all that happened since the last, as each wake-up takes the core from somebody.
  void tell();
  void wake();
  // The program's time in calls that waited for operations, up to now.
  uint64_t waited_ns(uint64_t now_ns) const;
  // The client wants a sign of life, and gets it.
  bool is_asked() const;
  void answer();

 private:
  explicit SegmentView(base::Memfd memory)
      : mapping_(std::make_shared<const base::Memfd>(std::move(memory))), shared_address_(header().shared_address) {}
  // Null when the offset is not that of a T inside the arena.
  template <typename T>
  T* record_at(uint64_t offset) const;

  std::shared_ptr<const base::Memfd> mapping_;
  uint64_t shared_address_;
  bool corrupt_ = false;
  bool told_ = false;
  uint32_t aliases_seen_ = 0;
  uint32_t answered_ = 0;
};

}  // namespace offpath::session
