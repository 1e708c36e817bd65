// SPDX-License-Identifier: BSD-3-Clause
// Kept: copies of clients' memory that many tasks read and none writes: they stay on the board from one task to the next, until
// room is wanted or another version comes. Used by the worker's thread alone.
#pragma once

#include "device/arena.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

namespace offpath::service {

class Kept {
 public:
  struct Name {
    uint64_t client, address, bytes;
    uint32_t version;
    auto operator<=>(const Name&) const = default;
  };
  struct Found {
    uint64_t place;
    bool filled;  // else somebody is at it
  };

  // Somebody uses it from now on, if it is there.
  std::optional<Found> use(const Name& name);
  // It is there, for its first user, who fills it. Other versions go.
  void add(const Name& name, uint64_t place, device::Arena& room);
  void note_filled(const Name& name) { copies_.at(name).filled = true; }
  // What nobody has filled then goes, and all of a client that has gone.
  void release(const Name& name, bool client_is_gone, device::Arena& room);
  // Makes room: one that nobody uses goes, the one that was not used for longest. False: there is none.
  bool drop_one(device::Arena& room);
  void remove_client(uint64_t client, device::Arena& room);

 private:
  struct Copy {
    uint64_t place = 0;
    uint32_t users = 0;
    bool filled = false;
    uint64_t used = 0;  // when last
  };
  using Copies = std::map<Name, Copy>;
  Copies::iterator drop(Copies::iterator copy, device::Arena& room);
  Copies copies_;
  uint64_t clock_ = 0;
};

}  // namespace offpath::service
