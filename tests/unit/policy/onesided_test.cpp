// SPDX-License-Identifier: BSD-3-Clause
// A program of batches whose costs are given; what the chooser makes of them.
#include "policy/onesided.hpp"

#include <gtest/gtest.h>

namespace offpath::policy {
namespace {

constexpr uint64_t kUs = 1000;

class Program {
 public:
  uint64_t host_ns = 50 * kUs;
  uint64_t dpu_ns = 100 * kUs;
  uint64_t gap_ns = 200;
  uint64_t bytes = 8192;
  Onesided kind = Onesided::get;
  Place place = Place::far;
  bool other = false;

  // One batch. Its way.
  Path run(int operations = 1) {
    OnesidedChooser::Choice first{};
    if (other) chooser_.add_other();
    for (int i = 0; i < operations; ++i) {
      const OnesidedChooser::Choice choice = chooser_.choose(kind, place, bytes, now_ns_);
      if (i == 0) first = choice;
      EXPECT_EQ(choice.path, first.path) << "a batch went two ways";
      now_ns_ += kUs;
      chooser_.posted(now_ns_);
      now_ns_ += gap_ns;
    }
    const uint64_t entered_ns = now_ns_;
    now_ns_ += static_cast<uint64_t>(operations) * (first.path == Path::host ? host_ns : dpu_ns);
    chooser_.flushed(entered_ns, now_ns_, true);
    why = first.why;
    return first.path;
  }
  int count_host(int batches, int operations = 1) {
    int count = 0;
    for (int i = 0; i < batches; ++i) count += run(operations) == Path::host ? 1 : 0;
    return count;
  }

  Why why = Why::policy;
  OnesidedChooser& chooser() { return chooser_; }
  uint64_t& now_ns() { return now_ns_; }

 private:
  OnesidedChooser chooser_;
  uint64_t now_ns_ = 1'000'000;
};

TEST(Onesided, BeginsAtTheServiceAndTriesTheOther) {
  Program program;
  EXPECT_EQ(program.count_host(4), 0) << "the first is not counted, three are";
  EXPECT_EQ(program.why, Why::policy);
  EXPECT_EQ(program.count_host(4), 4);
  EXPECT_EQ(program.why, Why::exploring);
  EXPECT_EQ(program.run(), Path::host) << "it is better";
  EXPECT_EQ(program.why, Why::adapted);
}

TEST(Onesided, StaysWhereTheServiceIsBetter) {
  Program program;
  program.host_ns = 150 * kUs;
  EXPECT_EQ(program.count_host(8), 4);
  EXPECT_EQ(program.count_host(100), 3) << "one trial after 64 batches";
  const int tried = program.count_host(10000);
  EXPECT_LE(tried, 3 * 8) << "ever more rarely";
  EXPECT_GE(tried, 3 * 4);
}

TEST(Onesided, OverlappedOnesStayAtTheServiceThatHidesThem) {
  Program program;
  program.gap_ns = 500 * kUs;
  program.dpu_ns = kUs;
  EXPECT_LE(program.count_host(200), 6) << "the other way is tried";
  program.gap_ns = 200;
  program.dpu_ns = 100 * kUs;
  EXPECT_GT(program.count_host(20), 10) << "the program has changed";
  program.gap_ns = 500 * kUs;
  program.dpu_ns = kUs;
  program.count_host(3);
  EXPECT_LE(program.count_host(100), 2) << "what was found out before still holds";
}

// Many short operations: the service takes more of the program's time than the library does.
TEST(Onesided, OverlappedOnesGoNativelyWhereTheServiceHidesLittle) {
  Program program;
  program.gap_ns = 500 * kUs;
  EXPECT_GT(program.count_host(100), 80);
  program.dpu_ns = kUs;
  program.now_ns() += 1'000'000 * kUs;
  program.count_host(200);
  EXPECT_LE(program.count_host(200), 10) << "the service has become better";
}

TEST(Onesided, ASinglePauseIsNoOverlap) {
  Program program;
  program.count_host(20);
  program.gap_ns = 20 * OnesidedChooser::kAtOnceNs;
  EXPECT_EQ(program.run(), Path::host);
  program.gap_ns = 200;
  EXPECT_EQ(program.count_host(20), 20);
}

TEST(Onesided, KeysAreApart) {
  Program program;
  EXPECT_EQ(program.count_host(20), 16);
  program.kind = Onesided::put;
  program.host_ns = 200 * kUs;
  EXPECT_EQ(program.count_host(20), 4);
  program.now_ns() += 1'000'000 * kUs;  // else the next trial were too much
  program.kind = Onesided::get;
  program.bytes = 20000;
  EXPECT_EQ(program.count_host(20), 4);
  program.bytes = 8300;  // as 8192
  EXPECT_EQ(program.run(), Path::host);
}

TEST(Onesided, LongOnesAreTheServices) {
  Program program;
  program.bytes = OnesidedChooser::kServedBytes;
  EXPECT_EQ(program.count_host(50), 0);
  program.bytes = OnesidedChooser::kServedBytes - 1;
  EXPECT_GT(program.count_host(50), 40);
  program.bytes = 1;
  EXPECT_GT(program.count_host(50), 40);
}

TEST(Onesided, ABatchGoesOneWay) {
  Program program;
  program.count_host(8, 4);
  EXPECT_EQ(program.count_host(10, 4), 10);
  // What comes first decides, also for another kind.
  OnesidedChooser& chooser = program.chooser();
  EXPECT_EQ(chooser.choose(Onesided::get, Place::far, 8192, ++program.now_ns()).path, Path::host);
  EXPECT_EQ(chooser.choose(Onesided::put, Place::far, 64, ++program.now_ns()).path, Path::host);
  chooser.flushed(program.now_ns(), program.now_ns() + 1, false);
  EXPECT_EQ(chooser.choose(Onesided::put, Place::far, 64, ++program.now_ns()).path, Path::host)
      << "the batch is not over";
  chooser.flushed(program.now_ns(), program.now_ns() + 1, true);
  EXPECT_EQ(chooser.choose(Onesided::put, Place::far, 64, ++program.now_ns()).path, Path::dpu);
}

TEST(Onesided, PlacesAreApart) {
  Program program;
  program.host_ns = 150 * kUs;
  EXPECT_EQ(program.count_host(20), 4);
  program.now_ns() += 1'000'000 * kUs;
  program.place = Place::own;
  program.host_ns = kUs;
  EXPECT_EQ(program.count_host(20), 16);
  // Both in one batch: each goes its way.
  OnesidedChooser& chooser = program.chooser();
  EXPECT_EQ(chooser.choose(Onesided::get, Place::own, 8192, ++program.now_ns()).path, Path::host);
  EXPECT_EQ(chooser.choose(Onesided::get, Place::far, 8192, ++program.now_ns()).path, Path::dpu);
  EXPECT_EQ(chooser.choose(Onesided::get, Place::own, 8192, ++program.now_ns()).path, Path::host);
  chooser.flushed(program.now_ns(), program.now_ns() + 1'000'000 * kUs, true);
  EXPECT_EQ(program.count_host(20), 20) << "that was not measured";
}

TEST(Onesided, WhatHasOthersInItIsNotMeasured) {
  Program program;
  program.other = true;
  EXPECT_EQ(program.count_host(100), 0);
  program.other = false;
  EXPECT_EQ(program.count_host(8), 4);
  program.other = true;
  program.host_ns = 1000 * kUs;
  EXPECT_EQ(program.count_host(20), 20) << "the way that is better without them";
}

TEST(Onesided, ATrialThatMeasuresNothingEnds) {
  Program program;
  EXPECT_EQ(program.count_host(5), 1) << "a trial has begun";
  OnesidedChooser& chooser = program.chooser();
  int host = 0;
  for (int i = 0; i < 60; ++i) {  // a get, and then an accumulate
    host += chooser.choose(Onesided::get, Place::far, 8192, ++program.now_ns()).path == Path::host ? 1 : 0;
    chooser.posted(++program.now_ns());
    chooser.add_other();
    chooser.flushed(program.now_ns(), program.now_ns() + 1, true);
  }
  EXPECT_EQ(host, 15);
  EXPECT_EQ(program.count_host(64), 0);
  EXPECT_EQ(program.count_host(10), 10);
}

TEST(Onesided, FollowsTheProgram) {
  Program program;
  EXPECT_EQ(program.count_host(100), 93) << "four on the service first, and a trial of it";
  program.host_ns = 5000 * kUs;  // the targets compute now
  EXPECT_LE(program.count_host(50), 10);
  program.host_ns = 50 * kUs;
  program.count_host(20000);
  EXPECT_GE(program.count_host(10), 9) << "found again by a trial";
}

TEST(Onesided, TryingIsBounded) {
  Program program;
  program.host_ns = 10'000'000 * kUs;  // 10 s: a target that computes
  EXPECT_EQ(program.count_host(5), 1);
  EXPECT_EQ(program.count_host(10000), 0) << "no second trial within fifty times that";
}

TEST(Onesided, TheFirstOneIsNotCounted) {
  Program program;
  EXPECT_EQ(program.count_host(4), 0);
  const uint64_t usual_ns = program.host_ns;
  program.host_ns = 5000 * kUs;  // it connects
  EXPECT_EQ(program.run(), Path::host);
  program.host_ns = usual_ns;
  EXPECT_EQ(program.count_host(20), 20);
}

TEST(Onesided, FlushesOfNothingAreNothing) {
  OnesidedChooser chooser;
  chooser.flushed(1, 2, true);
  chooser.posted(3);
  EXPECT_TRUE(chooser.idle());
  chooser.add_other();
  EXPECT_FALSE(chooser.idle());
  chooser.flushed(4, 5, true);
  EXPECT_TRUE(chooser.idle());
  EXPECT_EQ(chooser.choose(Onesided::put, Place::far, 0, 6).path, Path::dpu);
}

}  // namespace
}  // namespace offpath::policy
