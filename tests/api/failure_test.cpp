// SPDX-License-Identifier: BSD-3-Clause
// Operations that cannot succeed: every documented way to refuse or fail one while everybody lives.
#include "job.hpp"

#include <cstring>

namespace offpath::testing {
namespace {

TEST(Operation, WrongArgumentsAreRefused) {
  Job(1).run_in_team([](Process&, offpath_session_t*, offpath_team_t* team) {
    uint8_t a[8] = {}, b[8];
    const uint64_t bytes = 8, more = 9;
    const int64_t displ = 0;
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoall(nullptr, a, b, 8, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoall(team, a, b, 8, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoall(team, nullptr, b, 8, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoall(team, a, nullptr, 8, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(nullptr, a, &bytes, &displ, b, &bytes, &displ, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, nullptr, &displ, b, &bytes, &displ, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, &bytes, nullptr, b, &bytes, &displ, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, &bytes, &displ, b, nullptr, &displ, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, &bytes, &displ, b, &bytes, nullptr, &op), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, &bytes, &displ, b, &bytes, &displ, nullptr), OFFPATH_ERR_ARGUMENT);
    REQUIRE_STATUS(offpath_alltoallv(team, a, &more, &displ, b, &bytes, &displ, &op), OFFPATH_ERR_TRUNCATED);
  });
}

TEST(Operation, ImpossibleLengthsAreRefused) {
  Job(2, 2).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
    uint8_t a[8] = {}, b[8];
    offpath_op_t* op = nullptr;
    for (const uint64_t bytes : {uint64_t{1} << 46, uint64_t{1} << 63, UINT64_MAX, UINT64_MAX / 2 + 2}) {
      REQUIRE_STATUS(offpath_alltoall(team, a, b, bytes, &op), OFFPATH_ERR_ARGUMENT);
      REQUIRE_STATUS(offpath_alltoall(team, OFFPATH_IN_PLACE, b, bytes, &op), OFFPATH_ERR_ARGUMENT);
      const uint64_t counts[2] = {p.rank == 0 ? 0 : bytes, p.rank == 0 ? bytes : 0};
      const int64_t displs[2] = {0, 0};
      REQUIRE_STATUS(offpath_alltoallv(team, a, counts, displs, b, counts, displs, &op), OFFPATH_ERR_ARGUMENT);
    }
  });
}

TEST(Operation, ASenderOfTooMuchIsTruncated) {
  for (const uint32_t nodes : {1U, 2U}) {
    Job(2, nodes).run_in_team([](Process& p, offpath_session_t*, offpath_team_t* team) {
      uint8_t send[200] = {}, recv[200];
      memset(recv, 0xEE, sizeof(recv));
      const uint64_t out[2] = {100, 100}, in[2] = {100, p.rank == 0 ? 99u : 100u};
      const int64_t displs[2] = {0, 100};
      offpath_op_t* op = nullptr;
      REQUIRE_STATUS(
          offpath_alltoallv(team, send, p.rank == 0 ? in : out, displs, recv, p.rank == 0 ? in : out, displs, &op),
          OFFPATH_OK);
      const offpath_status_t status = offpath_op_wait(op, kLongNs);
      REQUIRE(status == (p.rank == 0 ? OFFPATH_ERR_TRUNCATED : OFFPATH_OK));
      if (p.rank == 0) {
        for (size_t i = 100; i < 200; ++i) REQUIRE(recv[i] == 0xEE);
      }
      offpath_op_free(op);
    });
  }
}

// A pointer into nowhere fails the operation of whoever gave it, and of its peer; nobody crashes.
void run_fault(uint32_t nodes, bool bad_send) {
  Job(2, nodes).run_in_team([&](Process& p, offpath_session_t* session, offpath_team_t* team) {
    std::vector<uint8_t> good(200000, 1), space(200000);
    auto* bad = reinterpret_cast<uint8_t*>(uint64_t{0x1000});
    const uint64_t counts[2] = {p.rank == 0 ? 0u : 200000u, p.rank == 0 ? 200000u : 0u};
    const int64_t displs[2] = {0, 0};
    const bool mine = p.rank == 0;
    offpath_op_t* op = nullptr;
    REQUIRE_STATUS(offpath_alltoallv(team, mine && bad_send ? bad : good.data(), counts, displs,
                                     mine && !bad_send ? bad : space.data(), counts, displs, &op),
                   OFFPATH_OK);
    const offpath_status_t status = offpath_op_wait(op, kLongNs);
    const bool hit = mine || bad_send;
    REQUIRE(status == (hit ? OFFPATH_ERR_MEMORY_FAULT : OFFPATH_OK));
    offpath_op_free(op);
    REQUIRE(offpath_session_alive(session) == 1);
    REQUIRE_STATUS(offpath_alltoallv(team, good.data(), counts, displs, space.data(), counts, displs, &op), OFFPATH_OK);
    p.finish_ok(op);
    REQUIRE(space == good);
  });
}

TEST(MemoryFault, OfTheSendBufferOnOneNode) { run_fault(1, true); }
TEST(MemoryFault, OfTheReceiveBufferOnOneNode) { run_fault(1, false); }
TEST(MemoryFault, OfTheSendBufferOnTwoNodes) { run_fault(2, true); }
TEST(MemoryFault, OfTheReceiveBufferOnTwoNodes) { run_fault(2, false); }

}  // namespace
}  // namespace offpath::testing
