// SPDX-License-Identifier: BSD-3-Clause
#include "service/tasks/kept.hpp"

namespace offpath::service {

Kept::Copies::iterator Kept::drop(Copies::iterator copy, device::Arena& room) {
  room.release(copy->second.place);
  return copies_.erase(copy);
}

std::optional<Kept::Found> Kept::use(const Name& name) {
  const auto found = copies_.find(name);
  if (found == copies_.end()) return std::nullopt;
  Copy& copy = found->second;
  if (copy.filled) {
    ++copy.users;
    copy.used = ++clock_;
  }
  return Found{copy.place, copy.filled};
}

void Kept::add(const Name& name, uint64_t place, device::Arena& room) {
  const auto is_other_version = [&](const Name& other) {
    return other.client == name.client && other.address == name.address && other.bytes == name.bytes;
  };
  auto copy = copies_.lower_bound({name.client, name.address, name.bytes, 0});
  while (copy != copies_.end() && is_other_version(copy->first))
    copy = copy->second.users == 0 ? drop(copy, room) : std::next(copy);
  copies_[name] = {place, 1, false, ++clock_};
}

void Kept::release(const Name& name, bool client_is_gone, device::Arena& room) {
  const auto found = copies_.find(name);
  if (--found->second.users == 0 && (client_is_gone || !found->second.filled)) drop(found, room);
}

bool Kept::drop_one(device::Arena& room) {
  auto oldest = copies_.end();
  for (auto copy = copies_.begin(); copy != copies_.end(); ++copy) {
    if (copy->second.users == 0 && (oldest == copies_.end() || copy->second.used < oldest->second.used)) oldest = copy;
  }
  if (oldest == copies_.end()) return false;
  drop(oldest, room);
  return true;
}

void Kept::remove_client(uint64_t client, device::Arena& room) {
  for (auto copy = copies_.lower_bound({client, 0, 0, 0}); copy != copies_.end() && copy->first.client == client;)
    copy = copy->second.users == 0 ? drop(copy, room) : std::next(copy);
}

}  // namespace offpath::service
