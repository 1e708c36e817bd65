// SPDX-License-Identifier: BSD-3-Clause
// The messages services send each other. Pure: encode into and decode from bytes, nothing else. Little endian on the
// wire whatever the processor; every length is checked; unknown versions and kinds are refused.
//
// The pull protocol (docs/architecture.md): the receiver of data asks.
//   pull   receiver -> sender   "send me what member `from` exports to member `to` in operation `number`", so much of it now.
//                               Again, with the same id: more of it (engine/rooms/turns.hpp)
//   data   sender -> receiver   a chunk, payload follows; the pull's id says where it belongs. An empty block is one of
//                               these without payload
//   coded  sender -> receiver   a chunk, too, whose payload means `length` bytes in one of the codecs that the pull has named
//                               (kernels/codecs), and has that checksum then
//   done   receiver -> sender   all received (status 0) or given up (< 0; OFFPATH_ERR_MEMORY_FAULT: the sender's buffer
//                               could not be read): the sender may use its buffer again. Not said of empty blocks. It says how
//                               long decoding has taken, too: a sender may find that not to pay
//   fail   sender -> receiver   the pull cannot be served, with the reason
//          Tag UINT32_MAX asks the other way round: "have you made all your pulls of this operation?" An empty block
//          says yes, fail says not yet (engine/rooms/endings.cpp)
//   push   sender -> receiver   a short block, whole, that need not have been asked for; payload follows. Nothing is
//                               said of one that was; of another the receiver says pull or done, once, so that the
//                               sender knows how many lie unused. Only to members that hello or pull has come from
//   lost   any -> any           member `from` is gone, and operation `number` is given up because of it (or
//                               kNoOperation)
//   gone   any -> any           the service of member `from` is, with all its members. Whoever hears so for the first time says so to
//                               those whom it has said hello to
//   hello  any -> any           opens the connection, so that the death of the peer is noticed, and tells member `to`
//                               that `from` has its end of the team. Answered by what is gone
//   task   what the nodes of a multicast operation tell each other, by a word; `from` tells `to` (engine/multicasts/multicasts.hpp)
//   fetch  receiver -> sender   a pull that names chunks of a task's part, not an export; answered as a pull is, under its tag
//   arrived  member `from` -> member `to`   in operation `number` all steps are done (graph::Ends): tag 1, of all members of the
//                                           worker of `from` and of those before it, `count` in all; tag 2, of `from`
//   ping   worker -> worker     "do you live?", and for how long there was no answer to that; the payload is the sender's fabric
//                               address. Answered, by a pong with the answerer's
//   pong   worker -> worker     where there was none for a while: for how long the answerer waited for processors since it last
//                               told this peer
//   batch  worker -> worker     the payload holds messages of the other kinds (batch.hpp)
// Requests (graph/request.hpp):
//   request  member `from` -> member `to`   the payload is the body; channel calls, where `number` counts the requests
//                                           of this pair of members
//   reply    back, same address             with the status, or with status 0 the payload
// Where both sides have a graph, they pull under the number of the request, each in the channel of the block's
// direction.
// Messages of two workers may overtake each other: each stands for itself, and a later one is sent because an earlier
// one was answered, or ends what the earlier one was about. Requests say by their number which comes first.
#pragma once

#include "base/limits.hpp"
#include "base/result.hpp"

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <span>

namespace offpath::wire {

inline constexpr uint8_t kVersion = 17;
inline constexpr size_t kMaxMessageBytes = 80;
inline constexpr uint64_t kMaxBlockBytes = base::kBlockLimitBytes;
inline constexpr size_t kPushedBytes = 4 << 10;  // blocks up to this length leave for other nodes unasked

inline constexpr uint64_t kNoOperation = UINT64_MAX;  // Message::number of a loss outside any operation

// What numbers count. Two members have a channel of their own for what one asks of the other, in each direction; so a
// block is named by team, channel, number, members and tag, and nothing has to be squeezed into a number.
enum class Channel : uint8_t {
  collectives = 0,  // operations of the team, in the order of posting
  calls = 1,        // blocks that go with a request, from the member that asks
  answers = 2       // blocks that go with its answer, to the member that asks
};

struct TeamId {
  std::array<uint8_t, 16> bytes{};
  auto operator<=>(const TeamId&) const = default;
};

struct TeamIdHash {
  size_t operator()(const TeamId& id) const {  // the id is random already
    size_t value;
    memcpy(&value, id.bytes.data(), sizeof(value));
    return value;
  }
};

enum class Kind : uint8_t {
  hello = 1,
  pull = 2,
  data = 3,
  done = 4,
  fail = 5,
  lost = 6,
  batch = 7,
  request = 8,
  reply = 9,
  push = 10,
  ping = 11,
  pong = 12,
  coded = 13,
  task = 14,
  fetch = 15,
  arrived = 16,
  gone = 17
};

// Of Kind::task.
enum class Word : uint8_t {
  armed = 1,  // to the parent: the subtree is ready, and what it can (multicast/arming.hpp)
  probe = 2,  // from the parent: find out whether all are heard, and say armed again
  go = 3,     // from the parent: multicast
  ring = 4,   // from the parent: fetch all; or, with a status, give up
  token = 5,  // it is your turn to send
  need = 6,   // to the predecessor: part `tag` is wanted
  ready = 7,  // to the successor: part `tag` is here
  fin = 8     // to the predecessor: nothing more is wanted
};

// One struct for all kinds; the fields a kind does not name are zero and not sent.
struct Message {
  Kind kind = Kind::hello;
  TeamId team;                             // all but data, coded, fail, batch, ping, pong
  Channel channel = Channel::collectives;  // hello pull push done lost gone request reply
  uint64_t number = 0;                     // the same: of the operation in its channel; hello: 0
  uint32_t from = 0;        // the same: the member whose data it is (lost, gone: who is gone; request, reply: who asks)
  uint32_t to = 0;          // the same: the member it is for (lost, gone: who is told; request, reply: who is asked)
  uint32_t tag = 0;         // pull push done: which of from's exports to `to`; arrived: graph::Ends
  int32_t status = 0;       // done fail lost gone reply: offpath_status_t
  uint64_t pull_id = 0;     // pull data coded fail: chosen at random by the receiver
  uint64_t bytes = 0;       // pull: most that is accepted; data, coded: length of the whole block
  uint64_t offset = 0;      // data, coded: of this chunk in the block; pull: bytes of the block that may leave now
  uint32_t codecs = 0;      // pull, fetch: a bit for each that the receiver can read; task: that all can
  uint32_t length = 0;      // coded: of what the chunk means
  uint32_t check = 0;       // coded: of that
  uint8_t codec = 0;        // coded
  uint8_t width = 0;        // coded: of the filter
  uint64_t decode_ns = 0;   // done: that the receiver has spent on decoding
  uint64_t waited_ns = 0;   // ping: for an answer; pong: for processors
  Word word = Word::armed;  // task
  uint32_t chunk_bytes = 0;  // task: of the group
  uint64_t digest = 0;       // task, armed: of the lengths
  uint64_t rate = 0;         // task: bytes per second; go: of each sender
  uint32_t first = 0;        // fetch: of the chunks. task, armed: chunks that were lost lately; go: chains;
                             // need, fin: how many of these there were
  uint32_t count = 0;        // fetch: of the chunks. task, armed: of so many; go: chunks of a pack. arrived: workers
  uint32_t part = 0;         // fetch
  auto operator<=>(const Message&) const = default;
};

// Returns the number of bytes written to out (at most kMaxMessageBytes).
size_t encode(const Message& message, std::span<uint8_t, kMaxMessageBytes> out);

// Errors: OFFPATH_ERR_ARGUMENT with the reason (short, long, version, kind, value out of range).
base::Result<Message> decode(std::span<const uint8_t> in);

}  // namespace offpath::wire
