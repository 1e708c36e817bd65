// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/room.hpp"

namespace offpath::service {

std::optional<uint64_t> Room::reserve(uint64_t bytes) {
  auto place = places_.allocate(bytes);
  while (!place) {
    auto oldest = copies_.end();
    for (auto copy = copies_.begin(); copy != copies_.end(); ++copy) {
      if (copy->second.users == 0 && (oldest == copies_.end() || copy->second.used < oldest->second.used))
        oldest = copy;
    }
    if (oldest == copies_.end()) break;
    drop(oldest);
    place = places_.allocate(bytes);
  }
  return place;
}

Room::Copies::iterator Room::drop(Copies::iterator copy) {
  release(copy->second.place);
  return copies_.erase(copy);
}

void Room::release(const Piece& piece) {
  if (piece.kept == nullptr) return release(piece.place);
  if (--piece.kept->users == 0 && !piece.kept->filled) drop(copies_.find(piece.kept->name));
}

Room::Kept* Room::use(const Name& name) {
  const auto found = copies_.find(name);
  if (found == copies_.end()) return nullptr;
  Kept& copy = found->second;
  if (copy.filled) {
    ++copy.users;
    copy.used = ++clock_;
  }
  return &copy;
}

Room::Kept& Room::keep(const Name& name, uint64_t place) {
  const auto is_other_version = [&](const Name& other) {
    return other.client == name.client && other.address == name.address && other.bytes == name.bytes;
  };
  auto copy = copies_.lower_bound({name.client, name.address, name.bytes, 0});
  while (copy != copies_.end() && is_other_version(copy->first)) copy = drop_unused(copy);
  return copies_[name] = {name, place, 1, false, ++clock_};
}

// What is still read goes with its last user.
void Room::remove_client(uint64_t client) {
  for (auto copy = copies_.lower_bound({client, 0, 0, 0}); copy != copies_.end() && copy->first.client == client;) {
    copy->second.filled = false;
    copy = drop_unused(copy);
  }
}

}  // namespace offpath::service
