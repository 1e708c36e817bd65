// SPDX-License-Identifier: BSD-3-Clause
// Ranks with batches whose costs are given; what they agree on.
#include "policy/window_chooser.hpp"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <vector>

namespace offpath::policy {
namespace {

constexpr uint64_t kUs = 1000;
using Changes = WindowChooser::Changes;

class Program {
 public:
  explicit Program(int ranks = 3, Changes changes = Changes::measured, Path first = Path::dpu) {
    for (int i = 0; i < ranks; ++i) ranks_.emplace_back(first, changes, now_ns_);
  }

  std::array<uint64_t, 2> cost_ns{50 * kUs, 100 * kUs};  // of a batch, by path
  uint64_t computing_ns = 0;                             // beside each
  bool atomic = true;
  bool barred = false;

  void batch(size_t rank, uint64_t bytes = 8) {
    WindowChooser& one = ranks_[rank];
    one.post(Onesided::put, atomic, Place::far, bytes, now_ns_);
    one.posted(now_ns_);
    now_ns_ += computing_ns;
    const uint64_t entered_ns = now_ns_;
    now_ns_ += cost_ns[static_cast<size_t>(one.path())];
    one.flushed(entered_ns, now_ns_, true);
  }
  // All meet after so many batches of each.
  Path phase(int batches = 50) {
    for (int i = 0; i < batches; ++i) {
      for (size_t rank = 0; rank < ranks_.size(); ++rank) batch(rank);
    }
    return meet();
  }
  // Until they have agreed.
  Path agreement() {
    const uint64_t before = agreements;
    while (agreements == before) phase();
    return path();
  }
  Path meet() {
    std::array<int64_t, WindowChooser::kNumbers> sum{};
    size_t met = 0;
    for (WindowChooser& one : ranks_) {
      if (!one.meets()) continue;
      ++met;
      const auto numbers = std::bit_cast<std::array<int64_t, WindowChooser::kNumbers>>(one.vote(able, barred, now_ns_));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += numbers[i];
    }
    EXPECT_TRUE(met == 0 || met == ranks_.size()) << "not all meet";
    if (met == ranks_.size()) {
      ++agreements;
      for (WindowChooser& one : ranks_) one.agree(std::bit_cast<WindowChooser::Vote>(sum));
    }
    for (const WindowChooser& one : ranks_) EXPECT_EQ(one.path(), path()) << "not alike";
    return path();
  }
  Path path() const { return ranks_[0].path(); }
  WindowChooser& rank(size_t i) { return ranks_[i]; }
  uint64_t& now_ns() { return now_ns_; }

  bool able = true;
  uint64_t agreements = 0;

 private:
  uint64_t now_ns_ = 1'000'000;
  std::vector<WindowChooser> ranks_;
};

TEST(WindowChooser, TriesTheNativeWayAndStaysWhereItIsBetter) {
  Program program;
  EXPECT_EQ(program.path(), Path::dpu);
  EXPECT_EQ(program.phase(), Path::host) << "a trial";
  EXPECT_EQ(program.rank(0).why(), Why::exploring);
  EXPECT_EQ(program.agreement(), Path::host) << "it is better";
  EXPECT_EQ(program.rank(0).why(), Why::adapted);
}

TEST(WindowChooser, GoesBackAndTriesEverMoreRarely) {
  Program program;
  program.cost_ns = {130 * kUs, 100 * kUs};
  EXPECT_EQ(program.agreement(), Path::host);
  EXPECT_EQ(program.agreement(), Path::dpu);
  int natively = 0;
  for (int i = 0; i < 500; ++i) natively += program.agreement() == Path::host ? 1 : 0;
  EXPECT_GE(natively, 1);
  EXPECT_LE(natively, 8);
}

TEST(WindowChooser, AWayThatCostsMuchIsTriedForATinyPartOfTheTime) {
  Program program;
  program.cost_ns = {10'000 * kUs, 10 * kUs};
  const uint64_t begin_ns = program.now_ns();
  uint64_t natively_ns = 0;
  for (int i = 0; i < 20'000; ++i) {
    const bool native = program.path() == Path::host;
    const uint64_t before_ns = program.now_ns();
    program.phase();
    if (native) natively_ns += program.now_ns() - before_ns;
  }
  // The first trial cannot be known to be long; the next ones wait until it is a fiftieth of the time.
  EXPECT_LE(natively_ns, 2 * 1500 * 10'000 * kUs + (program.now_ns() - begin_ns) / 25);
}

TEST(WindowChooser, TheServiceMustBeClearlyBetter) {
  Program program;
  program.cost_ns = {100 * kUs, 95 * kUs};
  program.agreement();
  EXPECT_EQ(program.agreement(), Path::host);
}

TEST(WindowChooser, FollowsAProgramThatChanges) {
  Program program;
  for (int i = 0; i < 4; ++i) program.agreement();
  ASSERT_EQ(program.path(), Path::host);
  program.cost_ns = {400 * kUs, 100 * kUs};
  int there = 0;
  for (int i = 0; i < 60; ++i) there += program.agreement() == Path::dpu ? 1 : 0;
  EXPECT_GE(there, 45) << "the service is better now";
}

TEST(WindowChooser, NobodyChangesWhileSomethingAtomicIsUnderWay) {
  Program program(3, Changes::always);
  EXPECT_EQ(program.meet(), Path::host);
  program.rank(1).post(Onesided::put, true, Place::far, 8, program.now_ns());
  program.rank(1).posted(program.now_ns());
  EXPECT_EQ(program.meet(), Path::host);
  program.rank(1).flushed(program.now_ns(), program.now_ns(), false);
  EXPECT_EQ(program.meet(), Path::host) << "a flush of another target";
  program.rank(1).flushed(program.now_ns(), program.now_ns(), true);
  EXPECT_EQ(program.meet(), Path::dpu);
  // A put is none of that, and what it costs belongs to neither way.
  program.rank(2).post(Onesided::put, false, Place::far, 8, program.now_ns());
  EXPECT_EQ(program.meet(), Path::host);
  program.able = false;
  EXPECT_EQ(program.meet(), Path::host);
}

TEST(WindowChooser, WhatNotAllLibrariesGetRightIsForTheService) {
  Program program;
  for (int i = 0; i < 3; ++i) program.agreement();
  ASSERT_EQ(program.path(), Path::host);
  program.barred = true;
  EXPECT_EQ(program.agreement(), Path::dpu);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(program.agreement(), Path::dpu);
}

TEST(WindowChooser, PutsAndGetsAloneNeedNoAgreement) {
  Program program;
  program.atomic = false;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(program.phase(), Path::dpu);
}

TEST(WindowChooser, MeetsRarelyWhereOccasionsAreMany) {
  Program program;
  for (int i = 0; i < 1000; ++i) {
    program.now_ns() += 20 * kUs;
    program.meet();
  }
  EXPECT_LE(program.agreements, 40U);
  // But not for long after that has changed.
  const uint64_t before = program.agreements;
  for (int i = 0; i < 200; ++i) program.phase();
  EXPECT_GE(program.agreements - before, 100U);
}

TEST(WindowChooser, MayBeForbidden) {
  Program program(2, Changes::never, Path::host);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(program.phase(), Path::host);
  EXPECT_EQ(program.agreements, 0U);
}

}  // namespace
}  // namespace offpath::policy
