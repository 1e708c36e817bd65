// SPDX-License-Identifier: BSD-3-Clause
// What an Engine keeps track of: operations, teams, requests, blocks and chunks under way. Internal to engine/.
#pragma once

#include "base/silence.hpp"
#include "engine/carriers/blocks.hpp"
#include "engine/carriers/chunks.hpp"
#include "engine/engine.hpp"
#include "engine/exchange.hpp"
#include "memory/completions.hpp"

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace offpath::engine {

offpath_status_t obituary_of(Loss how);
Loss loss_of(int32_t obituary);

using graph::Compute;
using graph::Export;
using graph::kClient;
using graph::kEndingTag;
using graph::kNoStep;
using graph::kScratch;
using graph::Layout;
using graph::Place;
using graph::Step;
using graph::StepKind;

struct Team;
struct Circle;
struct Gathering;

struct StepProgress {
  bool done = false;
  bool failed = false;               // or after one that did: what it would produce is garbage
  uint32_t first_waiting = kNoStep;  // of the exports that were asked for and wait for this step
  uint64_t moved = 0;
};

enum class ExportState : uint8_t {
  open,       // nobody has asked
  requested,  // and waits for its step
  reading,    // to be pushed; asked for, too, if there is a pull's id
  sending,
  resolved
};

struct ExportProgress {
  ExportState state = ExportState::open;
  bool waits = false;    // for its step, in the list of those
  bool pushable = true;  // until that has failed
  uint64_t pull_id = 0;
  uint64_t limit = 0;               // bytes the peer takes
  uint64_t granted = UINT64_MAX;    // of these, so many now
  uint32_t readable = 0;            // codecs that it can read
  uint32_t next_waiting = kNoStep;  // another export that waits for the same step
  Carried carried;
};

enum class Part : uint8_t { collective, requester, responder };

struct Operation {
  uint64_t id = 0;
  std::shared_ptr<Team> team;
  OperationKey key;
  Part part = Part::collective;
  uint64_t context = 0;  // of the responder's: the RequestId
  Graph graph;
  std::vector<StepProgress> steps;
  std::vector<ExportProgress> exports;
  std::vector<std::shared_ptr<const memory::LayoutIndex>> layouts;
  std::shared_ptr<memory::Port> scratch;                    // null: none needed, or none to be had
  std::vector<bool> begun;                                  // by member: has sent us anything for it
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> asked;  // by member and tag: the pull of what may be pushed
  uint32_t accesses = 0;                                    // under way at ports: while there are any it does not end
  uint32_t steps_left = 0;
  uint32_t exports_left = 0;
  uint32_t endings_left = 0;  // of the steps: questions of endings.cpp
  uint32_t own_steps = 0;     // the graph's as it was posted: what comes behind is the engine's
  bool awaits_reply = false;
  bool arrived = false;          // its own steps are done
  bool awaits_arrivals = false;  // of others, as its graph ends so
  std::set<uint32_t> takers;     // graph::Ends::by_pairs: who has not arrived yet
  bool moved = false;            // at least a byte
  bool over = false;             // only waits for settle()
  base::Status status;

  void note_begun(uint32_t member);
  bool has_begun(uint32_t member) const { return member < begun.size() && begun[member]; }
  // The first failure is the one that is reported.
  void note_failure(const base::Status& failure) {
    if (status.ok()) status = failure;
  }
  base::Status resolve(const Place& place, Location& out) const;
  // The channel of what it takes from others.
  wire::Channel incoming() const {
    if (part == Part::collective) return wire::Channel::collectives;
    return part == Part::requester ? wire::Channel::answers : wire::Channel::calls;
  }
  // Whether pulls that are to bring all they ask for did; when none has failed. What came may end early, but with a gap
  // in it, or without a beginning, the members do not even agree on who gets what from whom.
  base::Status shortfall() const;
  // What there is of an export: no more than its pull brought, where that may have brought less.
  uint64_t bytes_of(uint32_t export_index) const {
    const Export& block = graph.exports[export_index];
    const bool is_whole = graph.shortfall == OFFPATH_OK || block.after == kNoStep;
    return is_whole ? block.bytes : std::min(block.bytes, steps[block.after].moved);
  }
};

inline constexpr size_t kMaxUnansweredRequests = 4096;  // of one member at another

// A request of this member that was not answered yet.
struct PostedRequest {
  uint64_t context = 0;
  Place reply;
  uint64_t reply_bytes = 0;
  Operation* operation = nullptr;  // null: the answer is all there is to it
};

// A request whose data is being read, or that waits for one before it.
struct Outgoing {
  Request request;
  uint64_t context = 0;
  bool ready = false;
  base::Status status = {};
};

// Requests between this member and another one, both ways.
struct RequestPeer {
  std::deque<std::shared_ptr<Outgoing>> outgoing;
  uint64_t next_posted = 0;
  std::unordered_map<uint64_t, PostedRequest> posted;            // by number
  std::deque<std::pair<uint64_t, std::vector<uint8_t>>> unsent;  // of these: number and body
  uint64_t next_asked = 0;
  std::map<uint64_t, std::vector<uint8_t>> held;  // bodies by number: came before an earlier one
  std::unordered_set<uint64_t> deferred;          // numbers of those put off
};

// A request of another member that the responder has put off.
struct DeferredRequest {
  std::shared_ptr<Team> team;
  uint32_t from = 0;
  uint64_t number = 0;
};

struct Team {
  explicit Team(size_t members) : exchange(members) {}
  TeamSpec spec;
  TeamHandle handle = 0;
  std::shared_ptr<memory::Port> memory;
  std::vector<int64_t> peers;  // fabric peer by worker of the roster, -1: not connected yet
  std::vector<uint8_t> lost;   // by rank
  bool broken = false;         // a member is lost
  bool dead = false;           // a member's process is gone
  bool said_hello = false;
  bool removed = false;
  bool abandoned = false;                  // its client is gone
  offpath_status_t obituary = OFFPATH_OK;  // abandoned: what the others are told
  uint64_t next_sequence = 0;
  std::deque<Operation*> in_order;                // unfinished ones with Graph::in_order; the first may run
  std::map<OperationKey, Operation*> operations;  // unfinished
  Exchange exchange;
  std::shared_ptr<Gathering> gathering;                // null: not needed so far
  std::shared_ptr<Circle> circle;                      // its multicast group (multicasts.hpp); null: not needed so far
  std::vector<std::unique_ptr<RequestPeer>> requests;  // by rank, null: none yet; empty: none at all
  size_t open_requests = 0;                            // posted ones without an operation, and those put off

  // On the fabric, -1: not connected yet.
  int64_t peer(uint32_t rank) const { return peers[spec.members.worker_of(rank)]; }
  bool unused() const { return operations.empty() && open_requests == 0; }
};

inline void Operation::note_begun(uint32_t member) {
  if (begun.empty()) begun.resize(team->spec.members.size());
  begun[member] = true;
}

// What members of a team say of an operation, or of a block of it.
// That message, from one member of a team to another, of one operation.
inline wire::Message addressed(wire::Message message, const Team& team, wire::Channel channel, uint64_t number,
                               uint32_t from, uint32_t to) {
  message.team = team.spec.id;
  message.channel = channel;
  message.number = number;
  message.from = from;
  message.to = to;
  return message;
}

inline wire::Message about(wire::Kind kind, const Team& team, wire::Channel channel, uint64_t number, uint32_t from,
                           uint32_t to, uint32_t tag = 0) {
  wire::Message message;
  message.kind = kind;
  message.tag = tag;
  return addressed(message, team, channel, number, from, to);
}

// One block awaited, from a remote sender or from a neighbour.
struct Pull {
  Operation* operation = nullptr;
  uint32_t step = 0;
  Location target = {};
  uint64_t limit = 0;     // bytes we take
  uint64_t received = 0;  // placed, or being fetched
  uint64_t placed = 0;
  uint64_t total = UINT64_MAX;  // over the fabric; known with the first chunk
  bool pushed = false;          // its sender waits for no done
  uint64_t decode_ns = 0;       // spent on decoding it
};

// What went wrong with a block, as its sender must know.
enum class Cause : uint8_t { complete, target_fault, source_fault, refused };

// What this engine does itself, chunk by chunk: a copy, a reduction, a computation, or a neighbour's block that is
// pulled.
struct LocalWork {
  Operation* operation = nullptr;
  uint32_t step = 0;
  uint64_t pull_id = 0;  // 0: a step of its own
  Location source = {};
  Location operand = {};  // reductions only
  Location target = {};
  std::vector<Location> arrays = {};       // of a computation, whose bytes and offset are blocks
  std::shared_ptr<kernels::Run> run = {};  // likewise
  uint64_t bytes = 0;
  uint64_t offset = 0;  // of what is to be done next
  uint64_t done = 0;
  uint32_t in_flight = 0;  // chunks
  bool stalled = false;    // not queued, because so many are in flight
  bool in_file = false;    // one end of it
  base::Status status = {};
  Cause cause = Cause::complete;
};

// What one member of this worker says to another.
struct NearMessage {
  wire::Message message;         // of an offer: pull_id and bytes
  std::vector<uint8_t> payload;  // requests and replies
  Location source;               // offers
  bool is_offer = false;
};

// A message for a team that is not known yet.
struct EarlyMessage {
  wire::Message message;
  std::vector<uint8_t> payload;
  size_t weight() const { return 1 + payload.size() / sizeof(wire::Message); }
};

// A service that something is awaited from.
struct Watched {
  base::Silence silence;
  bool answered = false;
};

// What a port will do later, and what then follows.
struct Access {
  uint64_t operation = 0;  // 0: of none
  Blocks::Then then;
};

struct WaitingAnnouncement {
  wire::Message message;
  size_t bytes;
  fabric::Announced handle;
};

struct TeamKey {
  wire::TeamId id;
  uint32_t rank;
  auto operator<=>(const TeamKey&) const = default;
};

}  // namespace offpath::engine
