// SPDX-License-Identifier: BSD-3-Clause
// SegmentView: a service's checked view of a client's session segment. Every offset that comes out of the segment is
// checked against its size before it is used; values that are used twice are copied first.
#pragma once

#include "base/memfd.hpp"
#include "session/layout.hpp"

#include <optional>
#include <vector>

namespace offpath::session {

// A TeamRecord copied out of the segment.
struct TeamArguments {
  uint8_t id[16];
  uint32_t rank;
  uint32_t size;
  uint32_t address_stride;
  std::vector<uint8_t> addresses;
};

// A slot's arguments copied out of the segment. Arrays are filled for alltoallv only.
struct OpArguments {
  OpKind kind;
  uint32_t flags;
  uint64_t team;
  uint64_t sequence;
  uint64_t send;
  uint64_t recv;
  uint64_t block_bytes;
  std::vector<uint64_t> send_bytes, recv_bytes;
  std::vector<int64_t> send_displs, recv_displs;
};

class SegmentView {
 public:
  // Takes the mapping; errors when header values are not what layout.hpp says.
  static base::Result<SegmentView> open(base::Memfd memory);

  SegmentHeader& header() const { return *reinterpret_cast<SegmentHeader*>(memory_.data()); }
  Slot& slot(uint32_t index) const;  // index < kSlotCount
  // The next submitted slot index, or nothing. Errors (a wild index) disable the ring for ever.
  std::optional<uint32_t> take_submission();
  // The ring held nonsense: the client is broken or hostile.
  bool corrupt() const { return corrupt_; }

  // Null when the offset is not a team record inside the arena.
  TeamRecord* team_record(uint64_t offset) const;
  base::Result<TeamArguments> team_arguments(uint64_t offset) const;
  base::Result<OpArguments> op_arguments(const Slot& slot, uint32_t team_size) const;
  // u8[count] inside the arena, or null.
  uint8_t* bytes_at(uint64_t offset, uint64_t count) const;

  // Ends the operation and wakes whoever waits.
  void finish(uint32_t slot_index, offpath_status_t status, bool counts = true);
  void wake();

 private:
  explicit SegmentView(base::Memfd memory) : memory_(std::move(memory)) {}
  template <typename T>
  bool copy_array(uint64_t offset, uint64_t count, std::vector<T>& out) const;

  base::Memfd memory_;
  bool corrupt_ = false;
};

}  // namespace offpath::session
