// SPDX-License-Identifier: BSD-3-Clause
// Team: a member of a team whose client is served here, and what it knows of the others. The rooms keep what is theirs of it, which
// nobody else looks into. Internal to engine/.
#pragma once

#include "engine/core/exchange.hpp"
#include "engine/core/observer.hpp"
#include "engine/core/team_spec.hpp"
#include "memory/port.hpp"

#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace offpath::engine {

struct Circle;
struct Gathering;
struct Operation;
struct Requests;

struct TeamKey {
  wire::TeamId id;
  uint32_t rank;
  auto operator<=>(const TeamKey&) const = default;
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
  std::vector<uint32_t> greeted;  // workers: they watch each other with this one
  std::map<uint32_t, Loss> gone;  // services that are, as is told to the others: by a member there
  bool removed = false;
  bool abandoned = false;                  // its client is gone
  offpath_status_t obituary = OFFPATH_OK;  // abandoned: what the others are told
  uint64_t next_sequence = 0;
  std::deque<Operation*> in_order;                // unfinished ones with Graph::in_order; the first may run
  std::map<OperationKey, Operation*> operations;  // unfinished
  Exchange exchange;
  std::shared_ptr<Gathering> gathering;  // null: not needed so far
  std::shared_ptr<Circle> circle;        // its multicast group (multicasts.hpp); null: not needed so far
  std::shared_ptr<Requests> requests;    // with other members (calls.hpp); null: none so far
  size_t open_requests = 0;              // posted ones without an operation, and those put off

  // On the fabric, -1: not connected yet.
  int64_t peer(uint32_t rank) const { return peers[spec.members.worker_of(rank)]; }
  bool unused() const { return operations.empty() && open_requests == 0; }
};

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

}  // namespace offpath::engine
