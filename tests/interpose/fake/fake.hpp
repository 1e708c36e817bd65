// SPDX-License-Identifier: BSD-3-Clause
// A client library without a service, for tests of the MPI front end on one machine: each rank reads from its peers'
// memory what it needs, from within offpath_op_test. It is slow on purpose and can lose its "service" at an exact
// operation, which makes every path of the front end's recovery reachable without timing.
//
//   OFFPATH_FAKE_DELAY=N     tests before an operation starts to move (default 3)
//   OFFPATH_FAKE_POST_US=N   how long posting an operation takes (default 0)
//   OFFPATH_FAKE_DEPTH=N     operations a team may have under way before posting is refused (default and at most 16)
//   OFFPATH_FAKE_LOSE=r:p:b  world rank r loses its service when its p-th operation on a team is posted, of which b were
//                            begun, or when it has waited long for one behind these; several, with commas between
//   OFFPATH_FAKE_PART=p:r    all services have lost each other when somebody posts the p-th operation of a team; world rank
//                            r's had begun it, and what somebody had not posted then; the others had not
//   OFFPATH_FAKE_NO_ATTACH=r world rank r cannot attach
//
// Ranks meet on a board, a file in memory that all members of a team map.
#pragma once

#include <offpath/offpath.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fake {

constexpr uint32_t kMaxMembers = 64;
constexpr uint32_t kRing = 16;

// What a member offers in one operation.
struct Slot {
  std::atomic<uint64_t> number;  // of the operation
  std::atomic<uint64_t> offer;   // address of an Offer in the member's memory
  std::atomic<uint64_t> read_by;
};

struct Member {
  std::atomic<int> pid;
  std::atomic<uint64_t> visible;  // one more than the last operation the peers may read
  std::atomic<uint64_t> started;
  std::atomic<int> lost;
  Slot ring[kRing];
};

struct Board {
  Member members[kMaxMembers];
  std::atomic<uint64_t>
      parted;  // one more than the first operation that no service goes on with; 0: none has lost another
};

long number_from(const char* name, long fallback);

// "r:p" in the environment: whether r is this world rank, and p.
struct Loss {
  bool mine = false;
  long after = 0;
};
Loss loss_from(const char* name);
// Of which operation on, from 0, the services of a team have lost each other, and whether they had begun it here.
struct Parting {
  uint64_t from = UINT64_MAX;
  bool begun_here = false;
};
const Parting& parting();

// A one-sided operation (fake_window.cpp), and an op that stands for it.
struct Remote;
offpath_op* op_of(offpath_team* team, std::shared_ptr<Remote> remote);
offpath_status_t test(Remote& remote);
// An op that has ended so.
offpath_op* op_that_ended(offpath_session* session, offpath_status_t status);

}  // namespace fake

struct offpath_session {
  std::mutex mutex;
  std::vector<offpath_team*> teams;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> events{0};
  uint64_t posted = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  bool will_lose = false;
  uint64_t lose_after = 0;
  uint64_t lose_begun = 0;
  std::string prefix;
};

struct offpath_team {
  offpath_session* session = nullptr;
  fake::Board* board = nullptr;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint64_t posted = 0;  // or skipped
  std::vector<bool> in_use = std::vector<bool>(fake::kRing);
  std::string path;

  fake::Member& own() const { return board->members[rank]; }
  bool is_parted() const { return board->parted != 0; }
};
