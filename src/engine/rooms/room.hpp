// SPDX-License-Identifier: BSD-3-Clause
// Room: a part of an engine that does steps and takes messages of its own kinds (rooms.def). Called on the worker's thread, by the engine,
// which owns it; nothing blocks. A message that cannot be is refused and counted, never an error. Internal to engine/.
#pragma once

#include "engine/core/config.hpp"
#include "engine/core/core.hpp"
#include "engine/runner/runner.hpp"
#include "fabric/fabric.hpp"
#include "wire/message.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <set>

namespace offpath::engine {

class Room {
 public:
  // All outlive it.
  Room(Core& core, Runner& runner, const Config& config) : core_(core), runner_(runner), config_(config) {}
  virtual ~Room() = default;

  // ---- messages
  // The payload is the caller's again on return. `message` may be of any member of any team, or of none.
  virtual void on_message(const wire::Message&, fabric::Bytes) {}
  // One that can no longer reach its member, as that has departed: who waits for an answer gets one.
  virtual void on_absent(Team&, const wire::Message&) {}

  // ---- members
  // Member `rank` is gone; what the operations of the team still had to do with it has ended.
  virtual void on_lost(Team&, uint32_t /*rank*/) {}
  // The own one departs: what is kept of it goes.
  virtual void leave(Team&) {}
  // Others may wait for the own one, and not only in an operation that is under way here.
  virtual bool is_awaited(const Team&) const { return false; }

  // ---- operations
  // The operation is over: nothing of it may be touched any more.
  virtual void forget(Operation&) {}
  // Adds members that have to do something for it yet, and may never do so (endings.cpp).
  virtual void add_silent(const Operation&, std::set<uint32_t>& /*members*/) const {}
  // That member makes no more pulls in it.
  virtual void on_ended(Operation&, uint32_t /*member*/) {}
  // Calls `note(member, what)` for those that hold it up.
  using Note = std::function<void(uint32_t, Waits)>;
  virtual void add_waits(const Operation&, const Note&) const {}

  // ---- work
  // Moves what can be moved now. False: there was nothing to be done.
  virtual bool progress() { return false; }
  // How long progress() has nothing to do but for what comes; UINT64_MAX: for ever.
  virtual uint64_t wait_ns() { return UINT64_MAX; }
  // How long what comes may wait in the system, where all that is under way is this room's. 0: not known.
  virtual uint64_t rest_ns() const { return 0; }

 protected:
  Core& core_;
  Runner& runner_;
  const Config& config_;
};

enum class RoomIndex : uint8_t {
#define OFFPATH_ROOM(type, name) name,
#include "engine/rooms/rooms.def"
  count
};

using RoomList = std::array<Room*, static_cast<size_t>(RoomIndex::count)>;

constexpr RoomIndex room_of(wire::Kind kind) {
  switch (kind) {
#define OFFPATH_MESSAGE(kind, room, payload) \
  case wire::Kind::kind:                     \
    return RoomIndex::room;
#include "engine/rooms/rooms.def"
    case wire::Kind::batch:
      break;
  }
  return RoomIndex::count;
}

// What may follow a message.
enum class Payload : uint8_t { none, body, chunk, batch };

constexpr Payload payload_of(wire::Kind kind) {
  switch (kind) {
#define OFFPATH_MESSAGE(kind, room, payload) \
  case wire::Kind::kind:                     \
    return Payload::payload;
#include "engine/rooms/rooms.def"
    case wire::Kind::batch:
      return Payload::batch;
  }
  return Payload::none;
}

}  // namespace offpath::engine
