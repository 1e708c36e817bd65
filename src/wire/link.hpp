// SPDX-License-Identifier: BSD-3-Clause
// What the agent of a host and the service on its DPU say to each other (docs/design/0020-dpu-agent.md). Pure, and checked
// as message.hpp's are. Little endian; bodies of entries are records of that order, too.
//
// About the memory of the host's processes:
//   get    service -> agent   "send me these bytes of that client"; payload: `ranges` records of where they lie, if not
//                             at `address`
//   got    agent -> service   they are the payload
//   put    service -> agent   "write these"; payload: the ranges, then the bytes
//   ended  agent -> service   of a put: it is written (status 0). Of either: why not
// Everything else is an entry of a stream, which goes in rounds: what was found at a time, cut into messages of a length
// that every fabric protects (fabric::kShortBytes), numbered, as messages may overtake each other.
#pragma once

#include "base/result.hpp"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace offpath::wire {

inline constexpr uint8_t kLinkWireVersion = 2;
inline constexpr size_t kMaxAccessBytes = 1 << 20;  // of one get or put
inline constexpr uint32_t kMaxAccessRanges = 4096;

enum class LinkKind : uint8_t { get = 1, got = 2, put = 3, ended = 4, round = 5 };
inline constexpr size_t kMaxEntryBytes = 64 << 20;  // of the body

// The fields that a kind does not name are zero.
struct LinkMessage {
  LinkKind kind = LinkKind::round;
  uint32_t client = 0;   // get put: the agent's number of it
  uint32_t ranges = 0;   // get put
  int32_t status = 0;    // ended: offpath_status_t
  uint64_t number = 0;   // get got put ended: of the access; round: 0, 1, ...
  uint64_t address = 0;  // get put: in the client
  uint64_t bytes = 0;    // get got put
  auto operator<=>(const LinkMessage&) const = default;
};

inline constexpr size_t kLinkMessageBytes = 40;
void encode(const LinkMessage& message, std::span<uint8_t, kLinkMessageBytes> out);
// Errors: OFFPATH_ERR_ARGUMENT.
base::Result<LinkMessage> decode_link(std::span<const uint8_t> in);

enum class EntryKind : uint32_t {
  // To the service.
  hello = 1,   // first: the agent's fabric address
  attach = 2,  // a client: agent/patch.hpp, AttachBody
  submit = 3,  // a client's submission, with what it refers to: Submission, pieces
  asked = 4,   // a client wants a sign of life: AskedBody
  detach = 5,  // a client leaves
  // To the agent.
  attached = 6,  // session::AttachReply
  words = 7,     // what the service has written: WordsHead, words
  detached = 8,
  // Both: a client is gone, or is let go of.
  gone = 9,
  // To the agent: "do you live?"; and its answer. Each with a SignOfLife.
  ask = 10,
  alive = 11,
  // To the service: "what is there to be seen of you?"; and its answer: session/observation.hpp, a WorkerRecord and a
  // ClientRecord of each of the agent's clients, whose ids are the agent's numbers.
  look = 12,
  seen = 13
};

// As of Kind::ping and Kind::pong (message.hpp).
struct SignOfLife {
  uint64_t waited_ns;
};

struct LinkEntry {
  EntryKind kind;
  uint32_t client;  // 0 where it is about none
  std::span<const uint8_t> body;
};

void add_entry(std::vector<uint8_t>& stream, EntryKind kind, uint32_t client, std::span<const uint8_t> body);
// Takes the first entry off `rest`. Nothing, and `rest` as it was, when it has not come whole yet. Errors:
// OFFPATH_ERR_ARGUMENT, what follows is none.
base::Result<std::optional<LinkEntry>> take_link_entry(std::span<const uint8_t>& rest);

}  // namespace offpath::wire
