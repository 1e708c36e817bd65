// SPDX-License-Identifier: BSD-3-Clause
// Messages: who takes what comes, by rooms.def. Owned by the engine; on the worker's thread. What cannot be is refused and counted.
// Internal to engine/.
#pragma once

#include "engine/rooms/room.hpp"

namespace offpath::engine {

class Messages {
 public:
  Messages(Core& core, Runner& runner, const RoomList& rooms) : core_(core), runner_(runner), rooms_(rooms) {}

  // From the fabric.
  void receive(fabric::Bytes header, fabric::Bytes payload);
  void receive_batch(fabric::Bytes entries);
  // To its room; from the fabric or from a member here.
  void dispatch(const wire::Message& message, fabric::Bytes payload);

 private:
  void receive_one(const wire::Message& message, fabric::Bytes payload);
  void hand_over(const wire::Message& message, fabric::Bytes payload) {
    rooms_[static_cast<size_t>(room_of(message.kind))]->on_message(message, payload);
  }

  Core& core_;
  Runner& runner_;
  const RoomList& rooms_;
};

}  // namespace offpath::engine
