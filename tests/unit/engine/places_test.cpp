// SPDX-License-Identifier: BSD-3-Clause
// Copies and reductions between blocks that lie anywhere: client memory with a view and without, layouts, scratch.
#include "cluster.hpp"

#include <cstring>

namespace offpath::testing {
namespace {

using graph::client_place;
using graph::Graph;
using graph::Place;
using graph::scratch_place;
using Bytes = std::vector<uint8_t>;

// A random sequence of copies and reductions between blocks that lie anywhere, against the same done by hand.
void run_random_sequence(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  engine::Config config = Cluster::small_chunks();
  config.chunk_bytes = 64 + random() % 100;  // no multiple of an element
  config.pool_chunks = 2;
  Cluster cluster(
      1, 1, seed, config,
      random() % 2 == 0 ? std::make_shared<FarMemory>() : std::shared_ptr<memory::Port>(memory::make_direct()));
  const auto team = cluster.make_team({0}, 1);

  Graph graph;
  const offpath_element_t elements[] = {OFFPATH_ELEMENT_I8,  OFFPATH_ELEMENT_U16,     OFFPATH_ELEMENT_I32,
                                        OFFPATH_ELEMENT_U64, OFFPATH_ELEMENT_I32_I32, OFFPATH_ELEMENT_F32};
  graph.reduction.element = elements[random() % std::size(elements)];
  graph.reduction.op = graph.reduction.element == OFFPATH_ELEMENT_I32_I32 ? OFFPATH_OP_MINLOC : OFFPATH_OP_SUM;
  // With values that compare neither way the minimum shows the order of its operands.
  const bool ordered = graph.reduction.element == OFFPATH_ELEMENT_F32;
  if (ordered) graph.reduction.op = OFFPATH_OP_MIN;
  constexpr uint32_t kFloats[] = {0x7FC00001, 0x7FC00002, 0x00000000, 0x80000000, 0x3F800000};
  const size_t bytes = 16 * (random() % 40);

  constexpr size_t kBlocks = 6;
  std::vector<Bytes> client(kBlocks), model(kBlocks, Bytes(bytes));
  std::vector<Place> places;
  uint32_t last = graph::kNoStep;
  const auto chain = [&](uint32_t step) {
    graph.order(last, step);
    last = step;
  };
  for (size_t i = 0; i < kBlocks; ++i) {
    for (uint8_t& byte : model[i]) byte = static_cast<uint8_t>(random() % 4);
    for (size_t k = 0; ordered && k < bytes; k += 4) memcpy(&model[i][k], &kFloats[random() % std::size(kFloats)], 4);
    switch (random() % 3) {
      case 0:
        client[i] = model[i];
        client[i].reserve(1);
        places.push_back(at(client[i]));
        break;
      case 1: {  // scratch, filled from the client
        client[i] = model[i];
        client[i].reserve(1);
        places.push_back(scratch_place(graph.reserve_scratch(bytes)));
        chain(graph.copy(at(client[i]), places[i], bytes));
        break;
      }
      default: {  // elements of 8 bytes in two pieces, 12 bytes apart
        graph.layouts.push_back({8, 12, {{6, 5}, {1, 3}}});
        client[i].assign(bytes / 8 * 12 + 12, 0xEE);
        for (size_t k = 0; k < bytes; ++k) client[i][k / 8 * 12 + (k % 8 < 5 ? 6 + k % 8 : k % 8 - 4)] = model[i][k];
        places.push_back({address_of(client[i].data()), 0, static_cast<uint32_t>(graph.layouts.size() - 1)});
      }
    }
  }
  for (int i = 0; i < 30; ++i) {
    const size_t a = random() % kBlocks, b = random() % kBlocks, c = random() % kBlocks;
    const size_t skip = bytes == 0 ? 0 : 8 * (random() % (bytes / 8)), part = bytes - skip;
    if (random() % 2 == 0) {
      if (a == c) continue;
      chain(graph.copy(places[a].plus(skip), places[c].plus(skip), part));
      std::copy(model[a].begin() + static_cast<std::ptrdiff_t>(skip), model[a].end(),
                model[c].begin() + static_cast<std::ptrdiff_t>(skip));
    } else {
      chain(graph.reduce(places[a].plus(skip), places[b].plus(skip), places[c].plus(skip), part));
      kernels::combine(graph.reduction, model[a].data() + skip, model[b].data() + skip, model[c].data() + skip, part);
    }
  }
  std::vector<Bytes> result(kBlocks, Bytes(bytes + 1, 0xEE));
  for (size_t i = 0; i < kBlocks; ++i) chain(graph.copy(places[i], at(result[i]), bytes));
  const size_t steps = graph.steps.size();
  cluster.engine_of(0).post(team[0], 0, std::move(graph), 0);
  cluster.settle();
  ASSERT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.told(0, 0).steps, steps);
  for (size_t i = 0; i < kBlocks; ++i) {
    EXPECT_EQ(result[i].back(), 0xEE);
    result[i].pop_back();
    ASSERT_EQ(result[i], model[i]) << "block " << i;
  }
}

TEST(Places, CopiesAndReductionsMatchTheSameDoneByHand) {
  for (uint64_t seed = 0; seed < 400 && !::testing::Test::HasFailure(); ++seed) run_random_sequence(seed);
}

// Puts down zeros, and has a limit.
class LimitedDoer : public engine::Doer {
 public:
  std::shared_ptr<memory::Port> scratch(uint64_t bytes) override {
    return bytes <= 256 ? kernels_->scratch(bytes) : nullptr;
  }
  void combine(const kernels::Reduction&, const uint8_t*, const uint8_t*, uint8_t* result, size_t bytes) override {
    std::fill_n(result, bytes, 0);
    combined_bytes += bytes;
  }
  uint64_t combined_bytes = 0;

 private:
  const std::unique_ptr<engine::Doer> kernels_ = engine::make_doer(0);
};

TEST(Places, WhoReducesAndKeepsPartialResultsIsGiven) {
  LimitedDoer doer;
  engine::Config config = Cluster::small_chunks();
  config.doer = &doer;
  Cluster cluster(1, 1, 3, config, std::make_shared<FarMemory>());
  const auto team = cluster.make_team({0}, 1);
  const Bytes from(256, 7);
  Bytes to(256, 9);
  for (const uint64_t more : {0, 1}) {
    Graph graph;
    graph.reduction = {OFFPATH_OP_SUM, OFFPATH_ELEMENT_I8};
    const Place scratch = scratch_place(graph.reserve_scratch(256 + more));
    graph.order(graph.reduce(at(from), at(from), scratch, 256), graph.copy(scratch, at(to), 256));
    cluster.engine_of(0).post(team[0], more, std::move(graph), more);
    cluster.settle();
  }
  EXPECT_EQ(cluster.outcome(0, 0), OFFPATH_OK);
  EXPECT_EQ(cluster.outcome(0, 1), OFFPATH_ERR_NO_MEMORY);
  EXPECT_EQ(doer.combined_bytes, 256u);
  EXPECT_EQ(to, Bytes(256, 0));
}

}  // namespace
}  // namespace offpath::testing
