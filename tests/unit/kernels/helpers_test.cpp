// SPDX-License-Identifier: BSD-3-Clause
// Runs with helpers: each block once, the same bits whoever helps, and nothing touched after the owner's last
// reference.
#include "kernels/helpers.hpp"

#include "kernels/vector_program.hpp"

#include <gtest/gtest.h>

#include <random>

namespace offpath::kernels {
namespace {

// Adds one to each block's byte of its array.
class Counting : public Kernel {
 public:
  explicit Counting(uint64_t blocks, uint64_t bytes = 1 << 20) : blocks_(blocks), bytes_(bytes) {}
  uint64_t blocks() const override { return blocks_; }
  uint64_t block_bytes() const override { return bytes_; }
  void run(uint64_t block, Arrays arrays) override { ++arrays[0][block]; }

 private:
  const uint64_t blocks_, bytes_;
};

void nothing() {}

TEST(Helpers, EachBlockRunsOnceWhoeverOffers) {
  Helpers helpers(3, nothing);
  std::vector<std::thread> owners;
  for (int owner = 0; owner < 3; ++owner) {
    owners.emplace_back([&] {
      for (uint64_t blocks = 2; blocks < 150; ++blocks) {
        Counting kernel(blocks);
        std::vector<uint8_t> counts(blocks);
        const auto run = start_run(kernel, {counts.data()}, &helpers);
        while (run->done() < blocks) run->run_block();
        EXPECT_EQ(counts, std::vector<uint8_t>(blocks, 1));
      }
    });
  }
  for (std::thread& owner : owners) owner.join();
}

TEST(Helpers, DoItAllForAnOwnerWhoIsBusy) {
  std::atomic<int> prepared{0};
  {
    Helpers helpers(2, [&] { ++prepared; });
    EXPECT_EQ(helpers.count(), 2U);
    Counting kernel(100);
    std::vector<uint8_t> counts(100);
    const auto run = start_run(kernel, {counts.data()}, &helpers);
    while (run->done() < 100) std::this_thread::yield();
    EXPECT_EQ(counts, std::vector<uint8_t>(100, 1));
    EXPECT_FALSE(run->run_block());
  }
  EXPECT_EQ(prepared, 2);
}

TEST(Helpers, AreNotWokenForShortOnes) {
  std::atomic<int> prepared{0};
  {
    Helpers helpers(2, [&] { ++prepared; });
    Counting one(1), two_short_ones(2, 1000);
    std::vector<uint8_t> counts(2);
    start_run(one, {counts.data()}, &helpers);
    start_run(two_short_ones, {counts.data()}, &helpers);
  }
  EXPECT_EQ(prepared, 0);
}

TEST(Helpers, TouchNothingAfterTheOwnersLastReference) {
  Helpers helpers(3, nothing);
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    const uint64_t blocks = 2 + random() % 60;
    auto kernel = std::make_unique<Counting>(blocks);
    auto counts = std::make_unique<std::vector<uint8_t>>(blocks);
    auto run = start_run(*kernel, {counts->data()}, &helpers);
    const uint64_t own = random() % blocks;
    for (uint64_t i = 0; i < own; ++i) run->run_block();
    while (run->done() <= own && round % 2 == 0) std::this_thread::yield();  // a helper is at it
    run.reset();
    for (const uint8_t count : *counts) EXPECT_LE(count, 1);
    counts.reset();
    kernel.reset();
  }
}

TEST(Helpers, DoNotChangeABitOfASum) {
  constexpr uint64_t kRows = 100001;
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> number(-1, 1);
  VectorProgram program;
  program.rows = kRows;
  program.scalars = 4;
  program.vectors = 3;
  program.before = {{OFFPATH_SCALAR_ADD, 0, 0, 1}};
  program.statements = {{OFFPATH_UPDATE, 0, {{0, 0}, {1, 1}}},
                        {OFFPATH_DOT, 2, {{0, 0}, {0, 1}}},
                        {OFFPATH_UPDATE, 2, {{1, 0}}},
                        {OFFPATH_DOT, 3, {{0, 2}, {0, 2}}}};
  std::vector<std::vector<double>> given(3, std::vector<double>(kRows));
  for (auto& vector : given) {
    for (double& value : vector) value = number(random);
  }
  const auto result_with = [&](uint32_t count) {
    auto vectors = given;
    std::vector<double> scalars{0.3, 0.7, 0, 0};
    std::vector<uint8_t*> arrays{reinterpret_cast<uint8_t*>(scalars.data())};
    for (auto& vector : vectors) arrays.push_back(reinterpret_cast<uint8_t*>(vector.data()));
    Helpers helpers(count, nothing);
    const auto pass = make_pass(program);
    EXPECT_TRUE(pass->begin(arrays).ok());
    const auto run = start_run(*pass, arrays, count == 0 ? nullptr : &helpers);
    while (run->done() < pass->blocks()) run->run_block();
    pass->end(arrays);
    vectors.push_back(scalars);
    return vectors;
  };
  const auto alone = result_with(0);
  for (uint32_t count = 1; count < 5; ++count) EXPECT_TRUE(result_with(count) == alone) << count << " helpers";
}

}  // namespace
}  // namespace offpath::kernels
