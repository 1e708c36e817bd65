// SPDX-License-Identifier: BSD-3-Clause
// What this process counts of its messages, for its line of statistics.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstdint>

namespace offpath::mpi {

struct MessageCounts {
  std::atomic<uint64_t> offloaded{0};  // sent as tickets
  std::atomic<uint64_t> offloaded_bytes{0};
  std::atomic<uint64_t> native{0};    // of those the policy gives to the service: for want of room
  std::atomic<uint64_t> received{0};  // tickets
  std::atomic<uint64_t> ready{0};     // of these: whose payload was there when the program looked
  std::atomic<uint64_t> failed{0};    // on either side
};

}  // namespace offpath::mpi
