// SPDX-License-Identifier: BSD-3-Clause
#include "executor_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>

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

// Keeps requests until there are 64, then answers the last first.
void answer_backwards(offpath_upcall_request_t* request) {
  kept.push_back(request);
  if (kept.size() < 64) return;
  std::reverse(kept.begin(), kept.end());
  for (offpath_upcall_request_t* one : kept) {
    uint64_t number;
    memcpy(&number, one->args, sizeof(number));
    number *= number;
    memcpy(one->outputs[0].data, &number, sizeof(number));
    one->answer(one, 0);
  }
  kept.clear();
}

void keep(offpath_upcall_request_t* request) {
  const std::lock_guard lock(mutex);
  kept.push_back(request);
  changed.notify_all();
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
  const uint64_t arguments[] = {result};
  ASSERT_TRUE(device_->launch(entry("ask_many"), arguments, queue).ok());
  int64_t wrong = -1;
  ASSERT_TRUE(device_->read(&wrong, result, 8, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(wrong, 0);
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
  offpath_upcall_request_t* request = nullptr;
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return !kept.empty(); });
    request = kept.back();
    kept.clear();
  }
  process_.kill_it();
  EXPECT_EQ(device_->wait(queue).code(), OFFPATH_ERR_SERVICE_LOST);
  device_.reset();
  EXPECT_EQ(channels_lost, before + 1);
  memset(request->outputs[0].data, 1, request->outputs[0].bytes);  // still there
  request->answer(request, 0);
}

}  // namespace
}  // namespace offpath::device
