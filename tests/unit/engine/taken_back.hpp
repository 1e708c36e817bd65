// SPDX-License-Identifier: BSD-3-Clause
// Member 0 gives a block to 2 and fails for the loss of 1, of which 2 is told by 0; its program writes over the block as soon
// as it has it back. 2 has the whole block, or its operation has failed.
#pragma once

#include "cluster.hpp"

namespace offpath::testing {

// `make`: a cluster of three ranks for a seed, in whose memory `from` lies.
template <typename Make>
void expect_whole_or_failed(uint64_t seeds, Make make) {
  constexpr size_t kBytes = 640;
  using Bytes = std::vector<uint8_t>;
  uint32_t good = 0, failed = 0;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Bytes from(kBytes, 7), to(kBytes), never(kBytes);
    const std::unique_ptr<Cluster> c = make(seed, from);
    const auto team = c->make_team({0, 1, 2}, 1);
    graph::Graph giver, taker;
    giver.offer(2, 0, graph::client_place(address_of(from.data())), kBytes);
    giver.pull(1, 0, graph::client_place(address_of(never.data())), kBytes);  // what it fails for
    taker.pull(0, 0, graph::client_place(address_of(to.data())), kBytes);
    c->engine_of(0).post(team[0], 0, std::move(giver), 0);
    c->engine_of(2).post(team[2], 0, std::move(taker), 0);
    for (uint64_t i = 0; i < seed % 100; ++i) c->step();
    c->part(0, 1);
    for (int idle = 0; idle < 100; idle = c->step() ? 0 : idle + 1) {
      if (c->outcome(0, 0)) from.assign(kBytes, 0xEE);
    }
    ASSERT_TRUE(c->outcome(0, 0) && c->outcome(2, 0));
    const bool ended_well = c->outcome(2, 0) == OFFPATH_OK;
    if (ended_well) {
      EXPECT_EQ(to, Bytes(kBytes, 7));
    }
    ++(ended_well ? good : failed);
  }
  EXPECT_GT(good, 0U);
  EXPECT_GT(failed, 0U);
}

}  // namespace offpath::testing
