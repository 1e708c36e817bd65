// SPDX-License-Identifier: BSD-3-Clause
// Directory: where the processes of a job are served. Those of one worker have one address, which is in it once: most processes of
// a large job have neighbours.
//
// Threads: any, as it does not change.
#pragma once

#include "attach/exchange.hpp"
#include "attach/session.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace offpath::attach {

class Directory {
 public:
  Directory() = default;
  // By process.
  explicit Directory(std::span<const Address> addresses);
  // Of all of `team`. `own`: this process's; without a byte it has none. *without: the first process that has none, then nothing is told;
  // -1: all have one. False: the exchange failed. Collective.
  static bool gather(const Exchange& team, const Address& own, Directory* out, int* without);

  size_t size() const { return number_of_.size(); }
  bool empty() const { return number_of_.empty(); }
  // All processes can reach each other: services of one node that have no network address are one service. While a service is
  // replaced, processes may be at the one before and at the next one. The same on all that have the same directory.
  bool is_whole() const;
  // The same of places, each with its `address`; needs no memory.
  template <typename Places>
  static bool are_whole(const Places& places) {
    uint32_t longest = 0;
    for (const auto& place : places) longest = std::max(longest, place.address.bytes);
    if (longest > kUnreachableBytes) return true;
    return std::all_of(places.begin(), places.end(), [&](const auto& place) {
      return std::equal(place.address.data.begin(), place.address.data.begin() + kServiceBytes,
                        places[0].address.data.begin());
    });
  }
  // Of some of its processes, in that order.
  Directory of(std::span<const int> processes) const;

  // As offpath_directory_t has them.
  const void* addresses() const { return table_.data(); }
  uint32_t stride_bytes() const { return stride_; }
  uint32_t addresses_count() const { return stride_ == 0 ? 0 : static_cast<uint32_t>(table_.size() / stride_); }
  std::span<const std::byte> address(uint32_t number) const {
    return std::span(table_).subspan(size_t{number} * stride_, stride_);
  }
  const uint32_t* number_of() const { return number_of_.data(); }

 private:
  // An address (src/session/member_address.hpp) begins with the name of the service and the worker's number, which tell workers apart.
  // Behind that and a length is where other services reach it, if they can.
  static constexpr uint32_t kServiceBytes = 16, kUnreachableBytes = 24;

  uint32_t stride_ = 0;           // bytes; the longest one has so many
  std::vector<std::byte> table_;  // of the addresses
  std::vector<uint32_t> number_of_;
};

}  // namespace offpath::attach
