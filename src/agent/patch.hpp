// SPDX-License-Identifier: BSD-3-Clause
// What goes between a session segment on the host and its mirror on the DPU (docs/design/0020-dpu-agent.md): to the
// mirror pieces of what the client has written, back single words of what the service has. And the bodies of the
// entries that carry it (wire/link.hpp). Pure. Nothing is believed: where one may write is asked before it is done.
#pragma once

#include "base/result.hpp"
#include "session/segment_view.hpp"

#include <span>
#include <vector>

namespace offpath::agent {

struct AttachBody {
  uint32_t link_version = 0;     // session::kLinkVersion
  uint32_t segment_version = 0;  // session::kVersion
  uint32_t flags = 0;            // session::AttachRequest
  int32_t process = 0;           // for a person
  uint64_t shared_address = 0;   // of the memory that a service here would share
  uint64_t shared_bytes = 0;
};

struct Submission {
  uint32_t slot = 0;
  uint32_t pieces = 0;  // that follow: the head, then the bytes
};
struct Piece {
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

struct AskedBody {
  uint32_t asked = 0;
  uint32_t reserved = 0;
};

struct WordsHead {
  uint64_t clock_ns = 0;  // of the service, when this was made
  uint32_t told = 0;      // != 0: wake the client
  uint32_t count = 0;     // of words that follow
};
enum class How : uint16_t { store = 0, if_zero = 1 };
struct Word {
  uint32_t offset = 0;
  uint16_t bytes = 0;  // 1, 4 or 8
  How how = How::store;
  uint64_t value = 0;
};
static_assert(sizeof(AttachBody) == 32 && sizeof(Submission) == 8 && sizeof(Piece) == 8 && sizeof(AskedBody) == 8 &&
              sizeof(WordsHead) == 16 && sizeof(Word) == 16);

// The body of `submit` for what the client has put into that slot: the slot, its record, and of a new team or window
// what describes it. What lies outside the segment is left out; then the service refuses the operation.
std::vector<uint8_t> submission_of(const session::SegmentView& view, uint32_t slot);

// Calls put(offset, bytes) for each piece, when all of them lie where a client may write. Else error, and no call.
template <typename Put>
base::Result<uint32_t> take_submission(std::span<const uint8_t> body, Put put);

// Does that word lie where a service may write?
bool may_write(const Word& word);
// Its value in a segment or mirror, and the other way round. Precondition: may_write(word).
uint64_t load(const uint8_t* segment, uint32_t offset, uint16_t bytes);
void store(uint8_t* segment, const Word& word);

// ---- implementation -------------------------------------------------------------------------------------------------

base::Result<std::vector<std::pair<uint32_t, std::span<const uint8_t>>>> pieces_in(std::span<const uint8_t> body,
                                                                                   uint32_t& slot);

template <typename Put>
base::Result<uint32_t> take_submission(std::span<const uint8_t> body, Put put) {
  uint32_t slot = 0;
  const auto pieces = pieces_in(body, slot);
  if (!pieces.ok()) return pieces.status();
  for (const auto& [offset, bytes] : pieces.value()) put(offset, bytes);
  return slot;
}

}  // namespace offpath::agent
