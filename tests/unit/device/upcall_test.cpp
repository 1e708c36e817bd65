// SPDX-License-Identifier: BSD-3-Clause
#include "executor_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

namespace offpath::device {
namespace {

std::mutex mutex;
std::condition_variable changed;
std::vector<offpath_upcall_request_t*> kept;
std::atomic<int> channels_lost{0};

// Doubles every byte of both inputs into both outputs.
void answer_double(offpath_upcall_request_t* request) {
  bool good = request->code == 42 && request->args_bytes == 8 && request->input_count == 2 &&
              request->output_count == 2 && static_cast<const uint32_t*>(request->args)[1] == 18;
  for (uint32_t i = 0; good && i < 2; ++i) {
    const auto* from = static_cast<const uint8_t*>(request->inputs[1].data);  // output 1 is input 0
    auto* to = static_cast<uint8_t*>(request->outputs[i].data);
    for (uint64_t k = 0; k < request->outputs[i].bytes; ++k) to[k] = static_cast<uint8_t>(2 * from[k]);
  }
  request->answer(request, good ? 0 : -1);
}

void answer_square(offpath_upcall_request_t* request) {
  uint64_t number;
  memcpy(&number, request->args, sizeof(number));
  number *= number;
  memcpy(request->outputs[0].data, &number, sizeof(number));
  request->answer(request, 0);
}

// Keeps requests until there are 64, then answers the last first.
void answer_backwards(offpath_upcall_request_t* request) {
  kept.push_back(request);
  if (kept.size() < 64) return;
  std::reverse(kept.begin(), kept.end());
  for (offpath_upcall_request_t* one : kept) {
    answer_square(one);
  }
  kept.clear();
}

void keep(offpath_upcall_request_t* request) {
  const std::lock_guard lock(mutex);
  kept.push_back(request);
  changed.notify_all();
}

std::vector<offpath_upcall_request_t*> take_kept(size_t count) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return kept.size() >= count; });
  return std::exchange(kept, {});
}

void lost(uint64_t) { ++channels_lost; }

class UpcallTest : public testing::TestWithParam<const char*> {
 protected:
  void open(void (*handler)(offpath_upcall_request_t*)) {
    Device::Options options;
    options.name = "test";
    options.number = 3;
    options.serve_upcall = handler;
    options.channel_lost = lost;
    auto opened = Device::open(process_.take_socket(), options);
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    device_ = std::move(opened.value());
  }
  uint64_t entry(const char* name) { return device_->load(image_, std::vector<const char*>{name}).value()[0]; }

  ExecutorProcess process_{GetParam()};
  std::vector<uint8_t> image_ = test_image();
  std::unique_ptr<Device> device_;
};

INSTANTIATE_TEST_SUITE_P(Channel, UpcallTest, testing::Values("segment", "stream"),
                         [](const auto& channel) { return std::string(channel.param); });

TEST_P(UpcallTest, SpansOfTheHeapAndOthersGoBothWays) {
  open(answer_double);
  const uint64_t ask = entry("ask");
  for (const uint64_t bytes : {0, 1, 100, 70'000, 3'000'000}) {
    const uint64_t heap = device_->allocate(bytes + 1).value();
    const uint64_t result = device_->allocate(16).value();
    std::vector<uint8_t> data(bytes);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 7);
    Queue queue;
    ASSERT_TRUE(device_->write(heap, data.data(), bytes, queue).ok());
    const uint64_t arguments[] = {heap, bytes, result};
    ASSERT_TRUE(device_->launch(ask, arguments, queue).ok());
    int64_t results[2] = {};
    std::vector<uint8_t> back(bytes);
    ASSERT_TRUE(device_->read(results, result, 16, queue).ok());
    ASSERT_TRUE(device_->read(back.data(), heap, bytes, queue).ok());
    ASSERT_TRUE(device_->wait(queue).ok());
    EXPECT_EQ(results[0], 0);
    EXPECT_EQ(results[1], 1) << bytes;
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(back[i], static_cast<uint8_t>(2 * data[i])) << i;
  }
}

TEST_P(UpcallTest, ManyAnsweredInAnyOrder) {
  open(answer_backwards);
  const uint64_t result = device_->allocate(8).value();
  Queue queue;
  const uint64_t arguments[] = {result, 64};
  ASSERT_TRUE(device_->launch(entry("ask_many"), arguments, queue).ok());
  int64_t wrong = -1;
  ASSERT_TRUE(device_->read(&wrong, result, 8, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(wrong, 0);
}

// More than a segment has slots, and none is taken meanwhile. (A stream's socket would be full.)
TEST_P(UpcallTest, RepliesDoNotWaitForTheExecutor) {
  constexpr uint64_t kCount = 600;
  const bool stops = GetParam() == std::string("segment");
  open(keep);
  const uint64_t result = device_->allocate(8).value();
  Queue queue;
  const uint64_t arguments[] = {result, kCount};
  ASSERT_TRUE(device_->launch(entry("ask_many"), arguments, queue).ok());
  const auto requests = take_kept(kCount);
  if (stops) process_.stop_it();
  for (offpath_upcall_request_t* request : requests) answer_square(request);
  if (stops) process_.let_it_go_on();
  int64_t wrong = -1;
  ASSERT_TRUE(device_->read(&wrong, result, 8, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(wrong, 0);
}

// They have all slots that regions can have.
TEST_P(UpcallTest, RepliesReachAsManyRegionsAsThereAre) {
  constexpr size_t kRegions = 300, kAtOnce = 224;
  open(keep);
  const uint64_t ask = entry("ask_many");
  const uint64_t results = device_->allocate(8 * kRegions).value();
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kRegions; ++i) {
    threads.emplace_back([&, i] {
      Queue queue;
      const uint64_t arguments[] = {results + 8 * i, 1};
      EXPECT_TRUE(device_->launch(ask, arguments, queue).ok());
      EXPECT_TRUE(device_->wait(queue).ok());
    });
  }
  for (size_t answered = 0; answered < kRegions;) {
    const auto requests = take_kept(answered == 0 ? kAtOnce : 1);
    for (offpath_upcall_request_t* request : requests) answer_square(request);
    answered += requests.size();
  }
  for (std::thread& thread : threads) thread.join();
}

// The channel's thread answers while the device sends what others have asked for; both are longer than a socket holds.
TEST_P(UpcallTest, LongRepliesAndLongReadsMeet) {
  constexpr uint64_t kBytes = 32 << 20;
  static Device* asked = nullptr;
  static Queue* reading = nullptr;
  static std::vector<uint8_t> got;
  open([](offpath_upcall_request_t* request) {
    EXPECT_TRUE(asked->read(got.data(), asked->description().heap_address, got.size(), *reading).ok());
    request->answer(request, 0);
  });
  Queue queue, reads;
  asked = device_.get();
  reading = &reads;
  got.assign(kBytes, 1);
  const uint64_t ask = entry("ask");
  const uint64_t place = device_->allocate(kBytes / 2).value();
  const uint64_t arguments[] = {place + 16, kBytes / 4, place};
  ASSERT_TRUE(device_->launch(ask, arguments, queue).ok());
  EXPECT_TRUE(device_->wait(queue).ok());
  EXPECT_TRUE(device_->wait(reads).ok());
}

TEST_P(UpcallTest, NobodyServes) {
  open(nullptr);
  const uint64_t place = device_->allocate(100).value();
  Queue queue;
  const uint64_t arguments[] = {place + 16, 10, place};
  ASSERT_TRUE(device_->launch(entry("ask"), arguments, queue).ok());
  int64_t status = 0;
  ASSERT_TRUE(device_->read(&status, place, 8, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(status, OFFPATH_ERR_STATE);
}

TEST_P(UpcallTest, AnExecutorThatDiesMeanwhile) {
  open(keep);
  const int before = channels_lost;
  const uint64_t place = device_->allocate(100).value();
  const uint64_t ask = entry("ask");
  Queue queue;
  const uint64_t arguments[] = {place + 16, 10, place};
  ASSERT_TRUE(device_->launch(ask, arguments, queue).ok());
  offpath_upcall_request_t* request = take_kept(1)[0];
  process_.kill_it();
  EXPECT_EQ(device_->wait(queue).code(), OFFPATH_ERR_SERVICE_LOST);
  device_.reset();
  EXPECT_EQ(channels_lost, before + 1);
  memset(request->outputs[0].data, 1, request->outputs[0].bytes);  // still there
  request->answer(request, 0);
}

}  // namespace
}  // namespace offpath::device
