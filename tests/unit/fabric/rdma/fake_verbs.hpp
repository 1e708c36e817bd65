// SPDX-License-Identifier: BSD-3-Clause
// RDMA cards that are none, for endpoints of one process: in a program that is linked with fake_verbs.cpp libibverbs is this. They
// refuse what a card refuses, and fail when a test says so. Reads are done when they are asked for, unless they are held.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace offpath::testing {

struct FakePort {
  std::string device = "fake0";
  ibv_port_state state = IBV_PORT_ACTIVE;
  bool ethernet = true;
  uint8_t width = 2, speed = 32;    // as verbs have it: 100 Gbit/s
  std::vector<ibv_gid_entry> gids;  // none: one of RoCE version 2
};

// From a test's begin to its end: as it was made.
struct FakeCards {
  std::vector<FakePort> ports = std::vector<FakePort>(1);
  size_t most_locked = SIZE_MAX;  // bytes; more are refused
  bool has_queues = true;         // no: of completions
  int reads_asked = 16;           // at once, by a connection
  int reads_answered = 16;        // of the devices that are opened next
  int longest_queue = 1 << 20;    // of completions
  uint32_t longest_message = 1U << 31;
  bool reaches = true;  // no: reads end as if nobody were there
  bool holds = false;   // reads stay under way until release()

  // What there is, and was
  std::string opened;
  size_t locked = 0, regions = 0, connections = 0, most_under_way = 0;
  uint64_t reads = 0;
  uint32_t longest_read = 0;
  bool overflowed = false;
  ibv_ah_attr path{};  // of the connection that was made last

  size_t under_way() const;
  void release();
  // As a card that was pulled out: nothing is answered or completed any more, and who listens is told.
  void remove();
};

FakeCards& cards();
// Fails the test where something was not given back.
void start_anew();

}  // namespace offpath::testing
