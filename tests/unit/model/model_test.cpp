// SPDX-License-Identifier: BSD-3-Clause
// The model against what can be worked out by hand.
#include "model/scale.hpp"
#include "worked_out.hpp"

namespace offpath::model {
namespace {

TEST(Model, AlltoallIsItsBytesAtTheLinksRate) {
  for (const uint32_t nodes : {2u, 4u, 8u}) {
    const double wire = kMiB * (nodes - 1) / nodes / 0.125;
    EXPECT_NEAR(time_of(wire_only(), nodes, Collective::ialltoall, 1 << 20, Path::dpu), wire + 2 * 1000, 0.01 * wire)
        << nodes;
    EXPECT_NEAR(time_of(wire_only(), nodes, Collective::ialltoall, 1 << 20, Path::host), wire + 3 * 1000, 0.01 * wire);
  }
}

// To all at once, links are crossed; to one after the other, none is.
TEST(Model, LongBlocksOfMpichGoToOneAfterTheOther) {
  Machine m = wire_only();
  m.native.crossing_efficiency = 0.5;
  const double wire = kMiB * 3 / 4 / 0.125;
  for (const char* family : {"openmpi", "mpich"}) {
    m.native.family = family;
    const bool pairwise = m.native.family == "mpich";
    EXPECT_NEAR(time_of(m, 4, Collective::ialltoall, 1 << 20, Path::host), pairwise ? wire : 2 * wire, 0.02 * wire);
    EXPECT_NEAR(time_of(m, 4, Collective::ialltoallv, 1 << 20, Path::host), 2 * wire, 0.02 * wire);
  }
}

TEST(Model, TheDpuComputesOnWhileTheHostWaits) {
  const double wire = kMiB / 2 / 0.125;
  EXPECT_NEAR(time_of(wire_only(), 2, Collective::ialltoall, 1 << 20, Path::dpu, wire), wire + 2000, 0.01 * wire);
  // The receiver answers the announcement only when it waits: nothing is hidden.
  EXPECT_NEAR(time_of(wire_only(), 2, Collective::ialltoall, 1 << 20, Path::host, wire), 2 * wire + 2000, 0.01 * wire);
}

TEST(Model, ShortMessagesGoAtOnceOnTheHostToo) {
  const double wire = 32768 / 0.125;
  EXPECT_NEAR(time_of(wire_only(), 2, Collective::ialltoall, 65536, Path::host, 2 * wire), 2 * wire, 1500);
}

TEST(Model, BcastToAllAtOnceSharesTheRootsLink) {
  // Open MPI sends to each of up to three others; the chain sends once.
  const double once = kMiB / 0.125;
  EXPECT_NEAR(time_of(wire_only(), 4, Collective::ibcast, 1 << 20, Path::host), 3 * once, 0.02 * once);
  const double chain = time_of(wire_only(), 4, Collective::ibcast, 1 << 20, Path::dpu, 0, OFFPATH_ALGORITHM_CHAIN);
  const double segment = (112 << 10) / 0.125;
  // Two more hops for the first segments, of which up to four share the wire.
  EXPECT_GT(chain, once + segment);
  EXPECT_LT(chain, once + 2 * 4 * segment);
}

TEST(Model, WhatIsMulticastPassesTheSendersLinkOnce) {
  const double once = kMiB / 0.125, others = once * 7 / 8;
  const auto time = [](uint32_t nodes, Collective kind, offpath_algorithm_t algorithm) {
    return time_of(wire_only(), nodes, kind, 1 << 20, Path::dpu, 0, algorithm);
  };
  const double chunk = (32 << 10) / 0.125;
  for (const uint32_t nodes : {2u, 4u, 16u}) {
    EXPECT_NEAR(time(nodes, Collective::ibcast, OFFPATH_ALGORITHM_MULTICAST), once, chunk) << nodes;
  }
  const double gathered = time(8, Collective::iallgather, OFFPATH_ALGORITHM_MULTICAST);
  EXPECT_NEAR(gathered, others, 8 * chunk);
  EXPECT_NEAR(gathered, time(8, Collective::iallgather, OFFPATH_ALGORITHM_RING), 8 * chunk);
}

TEST(Model, ABurstPassesAtOnceAndIsSavedUpAgain) {
  Machine m = wire_only(0.125, 0);
  m.burst_bytes = 131072;
  m.peak_bytes_per_ns = 1e6;
  const double wire = (kMiB / 2 - 131072) / 0.125;
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), wire, 0.02 * wire);
}

TEST(Model, WhatIsCompressedTakesTheLongerOfWireAndCodec) {
  Machine m = wire_only();
  const double wire = kMiB / 2 / 0.125;
  m.compression = {0.25, 0, 0};
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), wire / 4, 0.02 * wire);
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::host), wire, 0.02 * wire) << "MPI libraries do not";
  m.compression = {0.25, 12, 0};  // ns per byte, on a link of 8
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), 1.5 * wire, 0.05 * wire);
  m.compression = {0.25, 2, 12};
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), 1.75 * wire, 0.1 * wire)
      << "one core does both";
  m.compression = {0.99, 0, 0};  // less than a sixteenth is saved: it goes as it is
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu), wire, 0.02 * wire);
}

TEST(Model, TheServiceTakesItsTimeFromTheRankWhoseCoreItShares) {
  Machine m = wire_only();
  m.service.own_cores = false;
  m.service.send_ns_per_byte = 0.5;
  m.service.receive_ns_per_byte = 1;
  const double compute = 20e6;
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu, compute), compute + 1.5 * kMiB / 2,
              0.01 * compute);
  m.service.own_cores = true;
  EXPECT_NEAR(time_of(m, 2, Collective::ialltoall, 1 << 20, Path::dpu, compute), compute, 1);
}

TEST(Model, ALateRankDelaysThoseThatWaitForIt) {
  Job job = job_of(wire_only(), 2);
  job.operations = {operation_of(job, Collective::ialltoall, 1 << 20, Path::dpu)};
  for (auto& acts : job.ranks) acts = {{Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
  job.ranks[1].insert(job.ranks[1].begin(), {Act::Kind::compute, 5e6, {}});
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome.ok());
  EXPECT_GT(outcome->act_end_ns[0].back(), 5e6 + kMiB / 2 / 0.125);
}

// Two communicators: each rank may begin with either.
TEST(Model, OneOrderOfPostingIsNeededOnOneCommunicatorOnly) {
  Job job = job_of(wire_only(), 2);
  job.operations.assign(4, operation_of(job, Collective::ialltoall, 1 << 20, Path::dpu));
  job.ranks[0] = {{Act::Kind::post, 0, {0, 1, 2, 3}}, {Act::Kind::wait, 0, {0, 1, 2, 3}}};
  job.ranks[1] = {{Act::Kind::post, 0, {1, 0, 3, 2}}, {Act::Kind::wait, 0, {0, 1, 2, 3}}};
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  EXPECT_NEAR(outcome->end_ns, 2 * kMiB / 0.125, 0.02 * kMiB);
}

// Nobody is in step after the first: what is asked for must not wait behind blocks, nor blocks for buffers.
TEST(Model, AlltoallsThatFollowEachOtherKeepTheLinksBusyAndAreTheSameEachTime) {
  Machine m;
  m.service.own_cores = true;
  Job job = job_of(m, 8, 2);
  constexpr uint32_t kOperations = 6;
  for (uint32_t i = 0; i < kOperations; ++i) {
    job.operations.push_back(operation_of(job, Collective::ialltoall, 1 << 20, Path::dpu));
    for (auto& acts : job.ranks) {
      acts.push_back({Act::Kind::post, 0, {i}});
      acts.push_back({Act::Kind::wait, 0, {i}});
    }
  }
  const auto first = simulate(job), second = simulate(job);
  ASSERT_TRUE(first.ok()) << first.status().text();
  const double wire = kOperations * 2 * kMiB * 14 / 16 / m.wire_efficiency / m.rate_bytes_per_ns;
  EXPECT_NEAR(first->end_ns, wire, 0.06 * wire);
  EXPECT_EQ(first->act_end_ns, second->act_end_ns);
  EXPECT_EQ(first->service_ns, second->service_ns);
  EXPECT_EQ(first->core_ns, second->core_ns);
}

// Waiting is no work: what is computed, what communication costs each core, and nothing for a rank that is early.
TEST(Model, ProcessorTimeIsWhatIsDone) {
  Machine m;
  m.service.own_cores = true;
  for (const Path path : {Path::host, Path::dpu}) {
    Job job = job_of(m, 2);
    job.operations.push_back(operation_of(job, Collective::ialltoall, 1 << 20, path));
    job.ranks = {{{Act::Kind::compute, 5e6, {}}}, {}};
    for (auto& acts : job.ranks) {
      acts.push_back({Act::Kind::post, 0, {0}});
      acts.push_back({Act::Kind::wait, 0, {0}});
    }
    const auto outcome = simulate(job);
    ASSERT_TRUE(outcome.ok()) << outcome.status().text();
    double service_ns = 0;
    for (const double each : outcome->service_ns) service_ns += each;
    EXPECT_EQ(service_ns > 0, path == Path::dpu);
    EXPECT_GT(outcome->core_ns, 5e6 + service_ns);
    EXPECT_LT(outcome->core_ns, outcome->end_ns) << "two ranks waited for most of it";
  }
}

// Four sections of 1 ms, and a rank that has 2 ms of its own to do first.
TEST(Model, WhoIsFreeDrawsTheNextSection) {
  Job job = job_of(wire_only(), 2);
  job.operations.assign(4, operation_of(job, Collective::window, 4096, Path::dpu));
  for (Operation& get : job.operations) get.remote = Remote::get, get.members = {0, 1};
  Act draw{Act::Kind::draw};
  job.ranks = {{draw}, {{Act::Kind::compute, 2e6, {}}, draw}};
  job.queues.emplace_back();
  for (uint32_t i = 0; i < 4; ++i) {
    job.sections.push_back({{Act::Kind::post, 0, {i}}, {Act::Kind::compute, 1e6, {}}, {Act::Kind::wait, 0, {i}}});
    job.queues[0].push_back(i);
  }
  const auto outcome = simulate(job);
  ASSERT_TRUE(outcome.ok()) << outcome.status().text();
  EXPECT_EQ(outcome->drawn, (std::vector<std::vector<uint32_t>>{{0, 1, 3}, {2}}));
  EXPECT_NEAR(outcome->end_ns, 3e6, 1e5);
  EXPECT_EQ(outcome->act_end_ns[0].size(), 3 * 3 + 1u);
  EXPECT_EQ(outcome->act_end_ns[1].size(), 1 + 3 + 1u);
}

TEST(Model, WaitingForWhatNeverComesIsSaid) {
  Job job = job_of(wire_only(), 2);
  job.operations = {operation_of(job, Collective::ialltoall, 1 << 20, Path::dpu)};
  job.ranks[0] = {{Act::Kind::post, 0, {0}}, {Act::Kind::wait, 0, {0}}};
  const auto outcome = simulate(job);
  ASSERT_FALSE(outcome.ok());
  EXPECT_NE(std::string(outcome.status().text()).find("rank 0 never gets past"), std::string::npos);
}

TEST(Model, EveryKindAndPathEnds) {
  for (size_t kind = 0; kind <= size_t(Collective::iexscan); ++kind) {
    for (const uint32_t nodes : {1u, 2u, 3u, 5u, 8u}) {
      for (const uint32_t ppn : {1u, 2u, 3u}) {
        for (const uint64_t bytes : {uint64_t{0}, uint64_t{40}, uint64_t{1} << 20}) {
          for (const char* family : {"openmpi", "mpich"}) {
            Machine m;
            m.native.family = family;
            const Job job = job_of(m, nodes, ppn);
            for (const Path path : {Path::host, Path::dpu}) {
              time_of(job, operation_of(job, static_cast<Collective>(kind), bytes, path));
              if (HasFailure())
                FAIL() << policy::collective_name(Collective(kind)) << ' ' << nodes << 'x' << ppn << ' ' << bytes;
            }
          }
        }
      }
    }
  }
}

// The closed form against the simulation, where that is still quick.
TEST(Scale, ClosedFormAgreesWithTheSimulation) {
  const struct {
    Collective kind;
    offpath_algorithm_t algorithm;
  } cases[] = {{Collective::ialltoall, OFFPATH_ALGORITHM_DEFAULT},  {Collective::iallgather, OFFPATH_ALGORITHM_DIRECT},
               {Collective::iallgather, OFFPATH_ALGORITHM_RING},    {Collective::ibcast, OFFPATH_ALGORITHM_CHAIN},
               {Collective::iallreduce, OFFPATH_ALGORITHM_DEFAULT}, {Collective::iallreduce, OFFPATH_ALGORITHM_RING}};
  Machine m;
  m.service.own_cores = true;
  for (const auto& each : cases) {
    for (const Path path : {Path::dpu, Path::host}) {
      if (path == Path::host && each.algorithm != OFFPATH_ALGORITHM_DEFAULT && each.kind != Collective::ibcast)
        continue;
      for (const uint32_t nodes : {2u, 4u, 8u, 16u}) {
        const Job job = job_of(m, nodes);
        const Operation operation = operation_of(job, each.kind, 4 << 20, path, each.algorithm);
        const double simulated = time_of(job, operation);
        const auto closed = price(m, operation, nodes, 1);
        ASSERT_TRUE(closed.ok());
        EXPECT_NEAR(closed->total_ns / simulated, 1, 0.15)
            << policy::collective_name(each.kind) << '=' << policy::algorithm_name(each.algorithm) << ' '
            << (path == Path::dpu ? "dpu " : "host ") << nodes;
      }
    }
  }
}

TEST(Scale, ThousandsOfNodesArePricedFromTheirGraphs) {
  Machine m;
  for (const Collective kind :
       {Collective::ialltoall, Collective::iallgather, Collective::ibcast, Collective::iallreduce}) {
    Operation operation;
    operation.kind = kind;
    operation.bytes = 4 << 20;
    operation.path = Path::dpu;
    const auto found = price(m, operation, 4096, 1);
    ASSERT_TRUE(found.ok()) << found.status().text();
    EXPECT_GT(found->total_ns, 4 * kMiB / m.rate_bytes_per_ns * 0.9) << policy::collective_name(kind);
  }
}

// The policy is told by the ranks, the expansions are the service's: neither sees the other.
TEST(Operations, ThePolicyKnowsTheAlgorithmsThatThereAre) {
  for (size_t i = 0; i < policy::kCollectivesCount; ++i) {
    const auto kind = static_cast<Collective>(i);
    if (!policy::is_collective(kind)) continue;
    for (const auto& [algorithm, name] : base::Words<offpath_algorithm_t>::rows) {
      if (algorithm == OFFPATH_ALGORITHM_DEFAULT) continue;
      ops::Collective collective;
      collective.kind = policy::kind_of(kind);
      collective.algorithm = algorithm;
      const bool there_is = ops::resolve_algorithm(collective, {}) == collective.algorithm;
      EXPECT_EQ(there_is, policy::knows(kind, collective.algorithm)) << policy::collective_name(kind) << " " << name;
    }
  }
}

}  // namespace
}  // namespace offpath::model
