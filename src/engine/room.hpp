// SPDX-License-Identifier: BSD-3-Clause
// Room: a part of an engine that takes messages of its own kinds (rooms.def). Called on the worker's thread, by the engine,
// which owns it; nothing blocks. A message that cannot be is refused and counted, never an error. Internal to engine/.
#pragma once

#include "fabric/fabric.hpp"
#include "wire/message.hpp"

#include <cstdint>

namespace offpath::engine {

struct Operation;
struct Team;

class Room {
 public:
  virtual ~Room() = default;
  // The payload is the caller's again on return. `message` may be of any member of any team, or of none.
  virtual void on_message(const wire::Message& message, fabric::Bytes payload) = 0;
  // Member `rank` is gone; what the operations of the team still had to do with it has ended.
  virtual void on_lost(Team&, uint32_t /*rank*/) {}
  // The operation is over: nothing of it may be touched any more.
  virtual void forget(Operation&) {}
  // Moves what can be moved now. False: there was nothing to be done.
  virtual bool progress() { return false; }
  // How long progress() has nothing to do but for what comes; UINT64_MAX: for ever.
  virtual uint64_t wait_ns() { return UINT64_MAX; }
};

enum class RoomIndex : uint8_t {
#define OFFPATH_ROOM(type, name) name,
#include "engine/rooms.def"
  count
};

// What may follow a message.
enum class Payload : uint8_t { none, body, chunk, batch };

constexpr Payload payload_of(wire::Kind kind) {
  switch (kind) {
#define OFFPATH_MESSAGE(kind, room, payload) \
  case wire::Kind::kind:                     \
    return Payload::payload;
#include "engine/rooms.def"
    case wire::Kind::batch:
      return Payload::batch;
  }
  return Payload::none;
}

}  // namespace offpath::engine
