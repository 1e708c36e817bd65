// SPDX-License-Identifier: BSD-3-Clause
#include "client/address_tables.hpp"

#include "session/member_address.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>
#include <unordered_map>

namespace offpath::client {

using base::Result;
using base::Status;
using session::MemberAddress;

Result<CompactAddresses> compact(const offpath_directory_t& directory, uint32_t members) {
  const auto* given = static_cast<const uint8_t*>(directory.addresses);
  const auto address = [&](uint32_t number) {
    return std::span(given + size_t{number} * directory.stride_bytes, directory.stride_bytes);
  };
  std::unordered_map<uint32_t, uint32_t> by_number;  // of those given
  std::unordered_map<std::string_view, uint32_t> by_bytes;
  std::vector<std::span<const uint8_t>> found;
  std::set<session::ServiceId> services;
  CompactAddresses out;
  for (uint32_t member = 0; member < members; ++member) {
    const uint32_t number = directory.number_of == nullptr ? member : directory.number_of[member];
    if (number >= directory.count) {
      return Status::error(OFFPATH_ERR_ARGUMENT, "a team's member %u has address %u of %u", member, number,
                           directory.count);
    }
    const auto [known, is_new] = by_number.try_emplace(number);
    if (is_new) {
      const auto decoded = MemberAddress::decode(address(number));
      if (!decoded.ok()) return decoded.status();
      services.insert(decoded.value().service);
      const auto bytes = address(number).first(decoded.value().bytes());
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      const auto [same, differs] = by_bytes.try_emplace(text, static_cast<uint32_t>(found.size()));
      if (differs) found.push_back(bytes);
      known->second = same->second;
      out.stride = std::max(out.stride, static_cast<uint32_t>(bytes.size()));
    }
    out.number_of.push_back(known->second);
  }
  // In their order the names of jobs come first.
  if (!std::equal(services.begin()->begin(), services.begin()->begin() + session::kJobNameBytes,
                  services.rbegin()->begin())) {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "the members' services do not know the same secret (they would not talk to each other). Set "
                         "OFFPATH_JOB_SECRET to the same for all ranks, or for none");
  }
  out.nodes = static_cast<uint32_t>(services.size());
  out.table.resize(found.size() * out.stride);
  for (size_t i = 0; i < found.size(); ++i) {
    std::copy(found[i].begin(), found[i].end(), out.table.begin() + static_cast<ptrdiff_t>(i * out.stride));
  }
  return out;
}

uint64_t AddressTables::take(Arena& arena, uint8_t* segment, std::span<const uint8_t> table) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.bytes == table.size() && memcmp(segment + entry.offset, table.data(), table.size()) == 0;
  });
  if (same != entries_.end()) {
    ++same->users;
    return same->offset;
  }
  const uint64_t offset = arena.allocate(table.size());
  if (offset == 0) return 0;
  memcpy(segment + offset, table.data(), table.size());
  entries_.push_back({offset, table.size(), 1});
  return offset;
}

void AddressTables::release(Arena& arena, uint64_t offset) {
  const auto entry =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& one) { return one.offset == offset; });
  if (entry == entries_.end() || --entry->users > 0) return;
  arena.release(entry->offset, entry->bytes);
  entries_.erase(entry);
}

}  // namespace offpath::client
