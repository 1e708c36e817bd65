// SPDX-License-Identifier: BSD-3-Clause
// Room: what lies on a board of tasks beside its entries, by place: arguments, names, copies of clients' memory. A copy that
// many tasks read and none writes is kept from one to the next, until room is wanted or another version comes. To an engine all of it is
// memory. Used by the worker's thread alone.
#pragma once

#include "device/arena.hpp"
#include "memory/port.hpp"
#include "tasks/board.hpp"

#include <compare>
#include <map>
#include <memory>
#include <optional>

namespace offpath::service {

class Room {
 public:
  struct Name {
    uint64_t client, address, bytes;
    uint32_t version;
    auto operator<=>(const Name&) const = default;
  };
  struct Kept {
    Name name;
    uint64_t place;
    uint32_t users = 1;
    bool filled = false;  // else its first user is at it
    uint64_t used = 0;    // when last
  };
  // Of one range of a task.
  struct Piece {
    uint32_t range;
    uint64_t place;
    Kept* kept = nullptr;  // it stays there for others
  };

  explicit Room(tasks::Board board) : board_(std::make_shared<const tasks::Board>(std::move(board))) {}
  const tasks::Board& board() const { return *board_; }
  const std::shared_ptr<memory::Port>& memory() const { return memory_; }
  uint8_t* at(uint64_t place, uint64_t bytes) const { return board_->room(place, bytes); }

  // Copies that nobody uses go where they are in the way.
  std::optional<uint64_t> reserve(uint64_t bytes);
  void release(uint64_t place) { places_.release(place); }
  // What nobody has filled goes then, and what a client that has gone has left.
  void release(const Piece& piece);
  // Null: there is none. It is used from now on if it is filled.
  Kept* use(const Name& name);
  // For its first user, who fills it. Other versions go.
  Kept& keep(const Name& name, uint64_t place);
  void remove_client(uint64_t client);
  uint64_t used() const { return places_.used(); }

 private:
  using Copies = std::map<Name, Kept>;
  Copies::iterator drop(Copies::iterator copy);
  Copies::iterator drop_unused(Copies::iterator copy) { return copy->second.users == 0 ? drop(copy) : std::next(copy); }

  const std::shared_ptr<const tasks::Board> board_;
  const uint64_t bytes_ = board_->bytes() - tasks::kRoomOffset;
  const std::shared_ptr<memory::Port> memory_ =
      memory::make_mapped({tasks::kRoomOffset, bytes_, at(tasks::kRoomOffset, bytes_), board_}, nullptr);
  device::Arena places_{tasks::kRoomOffset, bytes_};
  Copies copies_;
  uint64_t clock_ = 0;
};

}  // namespace offpath::service
