// SPDX-License-Identifier: BSD-3-Clause
// What a worker says to others that speak of their tasks wrongly.
#include "../engine/cluster.hpp"
#include "service/tasks/balancer.hpp"

namespace offpath::testing {
namespace {

using base::Status;

// Whoever asks for something else is refused.
class Nothing : public graph::Responder {
 public:
  graph::Answer on_request(engine::ClientId, uint64_t, uint32_t, graph::RequestId, const std::shared_ptr<memory::Port>&,
                           std::span<const uint8_t>) override {
    return graph::Answer::reply(Status::error(OFFPATH_ERR_RANGE, "not about tasks"));
  }
  void on_answered(engine::ClientId, uint64_t, graph::RequestId, const Status&) override {}
};

// Rank 0 says what it likes to the worker of rank 1, which never begins what comes.
class Guests : public ::testing::Test {
 protected:
  static constexpr uint64_t kNumber = 5;
  Guests() {
    std::ignore = tasks_.register_function(2, 0, service::Home{memory::make_direct(), nullptr, 0, 0}, function_);
    cluster_.engine_of(1).set_responder(&balancer_);
  }
  uint64_t say(std::vector<uint8_t> body) {
    graph::Request request;
    request.target = 1;
    request.body = std::move(body);
    cluster_.engine_of(0).post_request(team_[0], std::move(request), ++context_);
    cluster_.settle();
    return context_;
  }
  uint64_t say(tasks::Saying saying) { return say(tasks::encode_about(saying, kNumber)); }
  std::optional<offpath_status_t> answer(uint64_t context) const { return cluster_.outcome(0, context); }

  const tasks::Function function_{"nowhere.so", "nothing", "", false, false};
  Cluster cluster_{2, 2, 77, engine::Config(), memory::make_direct(), 1};
  std::vector<engine::TeamHandle> team_ = cluster_.make_team({0, 1}, 1);
  service::Tasks tasks_{{}, -1, [] {}, [](int, uint32_t) {}, [](uint64_t, uint32_t, const service::TaskEnd&) {}};
  Nothing nothing_;
  service::Balancer balancer_{service::Balancer::Mode::on, cluster_.engine_of(1), tasks_, nothing_,
                              [] { return false; }};
  uint64_t context_ = 1u << 20;
};

TEST_F(Guests, WithoutRoomForTasksNoFunctionIsRegistered) {
  service::Tasks::Options options;
  options.executors.count = 2;
  options.room_bytes = service::Entries::kPlateBytes;
  service::Tasks small(
      options, -1, [] {}, [](int, uint32_t) {}, [](uint64_t, uint32_t, const service::TaskEnd&) {});
  const service::Home home{memory::make_direct(), nullptr, 0, 0};
  EXPECT_EQ(small.register_function(2, 0, home, function_).code(), OFFPATH_ERR_NO_MEMORY);
}

TEST_F(Guests, ATaskIsCollectedOnceAtATime) {
  ASSERT_TRUE(tasks_.is_open());
  const uint64_t came = say(tasks::encode_moved(kNumber, function_, tasks::Task{}, 4096));
  EXPECT_EQ(answer(came), OFFPATH_OK);
  const uint64_t first = say(tasks::Saying::collect);
  EXPECT_FALSE(answer(first).has_value());
  const uint64_t second = say(tasks::Saying::collect);
  EXPECT_EQ(answer(second), OFFPATH_ERR_STATE);
  EXPECT_FALSE(answer(first).has_value()) << "the second one has ended it";
  EXPECT_EQ(answer(say(tasks::Saying::drop)), OFFPATH_OK);
  EXPECT_EQ(answer(first), OFFPATH_ERR_CANCELLED);
  EXPECT_EQ(answer(say(tasks::Saying::collect)), OFFPATH_ERR_STATE);
}

TEST_F(Guests, ATaskComesOnce) {
  const auto task = tasks::encode_moved(kNumber, function_, tasks::Task{}, 4096);
  EXPECT_EQ(answer(say(task)), OFFPATH_OK);
  EXPECT_EQ(answer(say(task)), OFFPATH_ERR_ARGUMENT);
}

}  // namespace
}  // namespace offpath::testing
