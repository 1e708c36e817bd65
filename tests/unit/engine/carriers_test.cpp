// SPDX-License-Identifier: BSD-3-Clause
// Carriers without an engine: what they do with blocks, and what they leave to others.
#include "engine/carriers/carrier.hpp"
#include "fabric/loopback/loopback.hpp"

#include <gtest/gtest.h>

namespace offpath::testing {
namespace {

using namespace engine;

// One block, of bytes of this process.
class OneBlock : public Blocks {
 public:
  explicit OneBlock(Compression& its_coding) : Blocks({4096, 2, 1024}, its_coding) {}

  bool may_push(Block, bool) const override { return pushable; }
  wire::Message push_of(Block) const override {
    wire::Message out;
    out.kind = wire::Kind::push;
    return out;
  }
  fabric::Peer peer_of(Block) override { return peer; }
  Compression::Plan plan_coding(const Offer&) const override { return {}; }
  void offer_near(Block, Location source, uint64_t) override { near = std::move(source); }
  Carried& carry(Block, Carrier& by) override {
    carried.by = &by;
    return carried;
  }
  void begin_reading(Block) override { ++reads; }
  std::optional<bool> end_reading(Block) override { return true; }
  void note_left(Block, uint64_t bytes) override { left += bytes; }
  void note_coded(Block, const Coded&) override {}
  void note_sampled(Block, const codecs::Chooser::Sampled&) override {}
  void note_pushed(Block, uint64_t bytes, bool) override { pushed += bytes; }
  void end_empty(Block) override { ++empty; }
  void refuse(Block, const base::Status&) override { ++refused; }
  void give_otherwise(Block) override { ++otherwise; }
  memory::Ticket next_ticket() override { return {}; }
  void later(Block, uint64_t, engine::Then) override {}

  bool pushable = true;
  fabric::Peer peer = 0;
  Location near;
  Carried carried;
  uint64_t left = 0, pushed = 0;
  int reads = 0, empty = 0, refused = 0, otherwise = 0;
};

class Carriers : public ::testing::Test {
 protected:
  Carriers() { blocks_.peer = fabric_->connect(other_->address()).value(); }

  Offer offer(uint64_t bytes, bool asked, bool near = false) {
    return {{}, source_, bytes, asked, 1, granted_, 0, near, false, false};
  }

  uint64_t granted_ = UINT64_MAX;
  fabric::LoopbackNetwork network_{1};
  std::unique_ptr<fabric::Fabric> fabric_ = network_.make_endpoint(), other_ = network_.make_endpoint();
  ChunkPool chunks_{4096, 16};
  Sender sender_{*fabric_, chunks_};
  Compression coding_{nullptr, nullptr, *fabric_};
  OneBlock blocks_{coding_};
  std::vector<uint8_t> bytes_ = std::vector<uint8_t>(10'000, 7);
  Location source_{std::shared_ptr<memory::Port>(memory::make_direct()), reinterpret_cast<uint64_t>(bytes_.data())};
};

TEST_F(Carriers, NearLendsTheMemoryUntilItIsToldToForgetTheBlock) {
  const auto near = make_near(blocks_, sender_);
  EXPECT_FALSE(near->take(offer(100, false, true))) << "nobody has asked";
  EXPECT_FALSE(near->take(offer(100, true, false))) << "its receiver is elsewhere";
  ASSERT_TRUE(near->take(offer(100, true, true)));
  EXPECT_EQ(blocks_.carried.by, near.get());
  EXPECT_FALSE(blocks_.near.memory->is_over());
  near->forget(blocks_.carried);
  EXPECT_TRUE(blocks_.near.memory->is_over());
  EXPECT_TRUE(near->take(offer(0, true, true)));
  EXPECT_EQ(blocks_.empty, 1);
}

TEST_F(Carriers, PushCopiesWhatIsShortAndLeavesTheRestToOthers) {
  const auto push = make_push(blocks_, sender_);
  EXPECT_TRUE(push->take(offer(100, false)));
  EXPECT_EQ(blocks_.pushed, 100U);
  EXPECT_FALSE(push->take(offer(5000, false))) << "longer than a chunk";
  blocks_.pushable = false;
  EXPECT_FALSE(push->take(offer(100, true)));
  blocks_.pushable = true;
  blocks_.peer = UINT32_MAX;
  EXPECT_FALSE(push->take(offer(100, true))) << "it cannot be reached";
}

TEST_F(Carriers, StreamSendsChunksWithinItsLimitsAndForgetsOnDemand) {
  const auto stream = make_stream(blocks_, sender_);
  EXPECT_FALSE(stream->take(offer(100, false)));
  ASSERT_TRUE(stream->take(offer(10'000, true)));
  EXPECT_EQ(stream->bytes_left(), 10'000U);
  while (stream->move()) continue;
  EXPECT_EQ(blocks_.left, 2 * 4096U) << "two chunks are under way, no more";
  stream->on_sent(blocks_.carried.transfer);
  EXPECT_TRUE(stream->move());
  EXPECT_EQ(blocks_.left, 10'000U);
  ASSERT_TRUE(stream->take(offer(10'000, true)));
  stream->forget(blocks_.carried);
  EXPECT_EQ(stream->bytes_left(), 0U);
  EXPECT_FALSE(stream->move());
  EXPECT_EQ(blocks_.refused, 0);
}

TEST_F(Carriers, StreamSendsNoMoreThanItsReceiverAllows) {
  const auto stream = make_stream(blocks_, sender_);
  granted_ = 1024;
  ASSERT_TRUE(stream->take(offer(10'000, true)));
  while (stream->move()) continue;
  EXPECT_EQ(blocks_.left, 1024U);
  stream->allow(blocks_.carried, 2048);
  while (stream->move()) continue;
  EXPECT_EQ(blocks_.left, 2048U);
  EXPECT_EQ(stream->bytes_left(), 0U) << "nothing more leaves unless it is asked for";
}

}  // namespace
}  // namespace offpath::testing
