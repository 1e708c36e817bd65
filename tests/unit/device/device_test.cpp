// SPDX-License-Identifier: BSD-3-Clause
// A device and its executor process, over both channels.
#include "executor_process.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <random>
#include <thread>

namespace offpath::device {
namespace {

using base::Status;

class DeviceTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto opened = Device::open(process_.take_socket(), {"test", 3});
    ASSERT_TRUE(opened.ok()) << opened.status().text();
    device_ = std::move(opened.value());
  }
  // Entries of the test's image.
  std::vector<uint64_t> load(const std::vector<const char*>& names) {
    const auto addresses = device_->load(image_, names);
    EXPECT_TRUE(addresses.ok()) << addresses.status().text();
    return addresses.ok() ? addresses.value() : std::vector<uint64_t>(names.size());
  }
  template <typename T>
  T value_at(uint64_t address) {
    T value{};
    Queue queue;
    EXPECT_TRUE(device_->read(&value, address, sizeof(value), queue).ok());
    EXPECT_TRUE(device_->wait(queue).ok());
    return value;
  }
  uint64_t room(uint64_t bytes) {
    const auto address = device_->allocate(bytes);
    EXPECT_TRUE(address.ok());
    return address.ok() ? address.value() : 0;
  }

  ExecutorProcess process_{GetParam()};
  std::vector<uint8_t> image_ = test_image();
  std::unique_ptr<Device> device_;
};

INSTANTIATE_TEST_SUITE_P(Channel, DeviceTest, testing::Values("segment", "stream"),
                         [](const auto& channel) { return std::string(channel.param); });

TEST_P(DeviceTest, RandomProgramsAgainstAModel) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  struct Block {
    uint64_t address;
    std::vector<uint8_t> bytes;
  };
  std::vector<Block> blocks;
  Queue queue;
  for (int step = 0; step < 1500; ++step) {
    const auto what = random() % 6;
    if (what == 0 || blocks.size() < 2) {
      const uint64_t bytes = 1 + random() % (random() % 16 == 0 ? 3'000'000 : 5000);
      const auto address = device_->allocate(bytes);
      if (!address.ok()) continue;
      blocks.push_back({address.value(), std::vector<uint8_t>(bytes, static_cast<uint8_t>(random()))});
      ASSERT_TRUE(device_->write(address.value(), blocks.back().bytes.data(), bytes, queue).ok());
      continue;
    }
    Block& block = blocks[random() % blocks.size()];
    const uint64_t offset = random() % block.bytes.size();
    const uint64_t bytes = random() % (block.bytes.size() - offset + 1);
    if (what == 1) {
      ASSERT_TRUE(device_->wait(queue).ok());
      ASSERT_TRUE(device_->release(block.address).ok());
      std::swap(block, blocks.back());
      blocks.pop_back();
    } else if (what == 2) {
      for (uint64_t i = 0; i < bytes; ++i) block.bytes[offset + i] = static_cast<uint8_t>(random());
      ASSERT_TRUE(device_->write(block.address + offset, block.bytes.data() + offset, bytes, queue).ok());
    } else if (what == 3) {
      const Block& other = blocks[random() % blocks.size()];
      const uint64_t part = std::min<uint64_t>(bytes, other.bytes.size());
      if (&other == &block) continue;
      std::copy_n(other.bytes.begin(), part, block.bytes.begin() + static_cast<ptrdiff_t>(offset));
      ASSERT_TRUE(device_->copy(block.address + offset, other.address, part, queue).ok());
    } else {
      std::vector<uint8_t> got(bytes);
      ASSERT_TRUE(device_->read(got.data(), block.address + offset, bytes, queue).ok());
      ASSERT_TRUE(device_->wait(queue).ok());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), block.bytes.begin() + static_cast<ptrdiff_t>(offset)));
    }
  }
}

TEST_P(DeviceTest, RegionsAndGlobals) {
  const auto entries = load({"add", "sum_of_many", "count", "counter", "constant"});
  const uint64_t result = room(8);
  Queue queue;
  const uint64_t two[] = {result, 40, 2};
  uint64_t value = 0;
  ASSERT_TRUE(device_->launch(entries[0], two, queue).ok());
  ASSERT_TRUE(device_->read(&value, result, 8, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(value, 42U);
  std::vector<uint64_t> many{result};
  uint64_t expected = 0;
  for (uint64_t i = 1; i <= 15; ++i) {
    many.push_back(i * 1000);
    expected += i * i * 1000;
  }
  ASSERT_TRUE(device_->launch(entries[1], many, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(value_at<uint64_t>(result), expected);
  EXPECT_EQ(value_at<int>(entries[3]), 7);
  ASSERT_TRUE(device_->launch(entries[2], {}, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(value_at<int>(entries[3]), 8);
  const int hundred = 100;
  ASSERT_TRUE(device_->write(entries[3], &hundred, sizeof(hundred), queue).ok());
  EXPECT_EQ(value_at<int>(entries[3]), 100);
}

TEST_P(DeviceTest, RegionsKnowTheNumberOfTheirDevice) {
  const auto entries = load({"tell_number"});
  const uint64_t result = room(4), arguments[] = {result};
  Queue queue;
  ASSERT_TRUE(device_->launch(entries[0], arguments, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(value_at<int>(result), 3);
}

// There is room for them once.
TEST_P(DeviceTest, ArgumentsTakeNoRoomWhenTheirRegionIsOver) {
  const auto entries = load({"sum_of_many"});
  const std::vector<uint64_t> many{room(8), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const uint64_t last = room(8 * many.size());
  for (uint64_t bytes = 64 << 20; bytes > 0; bytes /= 2) {
    while (device_->allocate(bytes).ok()) continue;
  }
  ASSERT_TRUE(device_->release(last).ok());
  Queue queue;
  for (int i = 0; i < 3; ++i) {
    const Status launched = device_->launch(entries[0], many, queue);
    ASSERT_TRUE(launched.ok()) << launched.text();
    ASSERT_TRUE(device_->wait(queue).ok());
  }
}

TEST_P(DeviceTest, BadAddressesAreErrorsNotCrashes) {
  const auto entries = load({"constant", "add"});
  Queue queue;
  int value = 1;
  EXPECT_EQ(device_->write(16, &value, sizeof(value), queue).code(), OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(device_->read(&value, 16, sizeof(value), queue).code(), OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(device_->read(&value, UINT64_MAX - 1, sizeof(value), queue).code(), OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(device_->write(entries[0], &value, sizeof(value), queue).code(), OFFPATH_ERR_MEMORY_FAULT);
  EXPECT_EQ(device_->release(1234).code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_TRUE(device_->state().ok());
  EXPECT_EQ(value_at<int>(entries[0]), 5);
}

TEST_P(DeviceTest, FullMemorySaysSo) {
  const auto large = device_->allocate(65 << 20);
  EXPECT_EQ(large.status().code(), OFFPATH_ERR_NO_MEMORY);
  EXPECT_NE(std::string(large.status().text()).find("device 3 (test)"), std::string::npos);
  for (int i = 0; i < 5; ++i) {  // given back, pages too
    const uint64_t address = room(60 << 20);
    std::vector<uint8_t> bytes(60 << 20, static_cast<uint8_t>(i + 1));
    Queue queue;
    ASSERT_TRUE(device_->write(address, bytes.data(), bytes.size(), queue).ok());
    EXPECT_EQ(value_at<uint8_t>(address + bytes.size() - 1), i + 1);
    ASSERT_TRUE(device_->release(address).ok());
  }
}

TEST_P(DeviceTest, ImagesThatCannotBeLoaded) {
  const auto missing = device_->load(image_, std::vector<const char*>{"add", "no_such_entry"});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(std::string(missing.status().text()).find("no_such_entry"), std::string::npos);
  const std::vector<uint8_t> garbage(5000, 1);
  EXPECT_FALSE(device_->load(garbage, std::vector<const char*>{"add"}).ok());
  EXPECT_FALSE(device_->load({}, std::vector<const char*>{}).ok());
  EXPECT_TRUE(device_->state().ok());
}

TEST_P(DeviceTest, RegionsThatWaitForEachOther) {
  const auto entries = load({"meet"});
  for (int round = 0; round < 10; ++round) {
    std::vector<std::thread> threads;
    std::vector<uint64_t> places;
    for (int pair = 0; pair < 6; ++pair) {
      places.push_back(room(8));
      const uint64_t zero = 0;
      Queue queue;
      ASSERT_TRUE(device_->write(places.back(), &zero, 8, queue).ok());
    }
    for (int i = 0; i < 12; ++i) {
      threads.emplace_back([&, i] {
        Queue queue;
        const uint64_t arguments[] = {places[static_cast<size_t>(i % 6)]};
        EXPECT_TRUE(device_->launch(entries[0], arguments, queue).ok());
        EXPECT_TRUE(device_->wait(queue).ok());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const uint64_t place : places) EXPECT_TRUE(device_->release(place).ok());
  }
}

TEST_P(DeviceTest, ACrashNamesTheRegion) {
  const auto entries = load({"crash", "add"});
  Queue queue;
  ASSERT_TRUE(device_->launch(entries[0], {}, queue).ok());
  const Status status = device_->wait(queue);
  EXPECT_EQ(status.code(), OFFPATH_ERR_SERVICE_LOST);
  const std::string text = status.text();
  EXPECT_NE(text.find("Segmentation fault"), std::string::npos) << text;
  EXPECT_NE(text.find("crash"), std::string::npos) << text;
  EXPECT_NE(text.find("0x10"), std::string::npos) << text;
  EXPECT_EQ(device_->launch(entries[1], {}, queue).code(), OFFPATH_ERR_SERVICE_LOST);
  EXPECT_EQ(device_->state().code(), OFFPATH_ERR_SERVICE_LOST);
}

TEST_P(DeviceTest, AFullStackIsACrashToo) {
  const auto entries = load({"overflow_stack"});
  const uint64_t place = room(8);
  Queue queue;
  const uint64_t arguments[] = {place};
  ASSERT_TRUE(device_->launch(entries[0], arguments, queue).ok());
  EXPECT_NE(std::string(device_->wait(queue).text()).find("overflow_stack"), std::string::npos);
}

TEST_P(DeviceTest, ExitIsTold) {
  const auto entries = load({"leave"});
  Queue queue;
  ASSERT_TRUE(device_->launch(entries[0], {}, queue).ok());
  const std::string text = device_->wait(queue).text();
  EXPECT_NE(text.find("exit(3)"), std::string::npos) << text;
  EXPECT_NE(text.find("leave"), std::string::npos) << text;
}

TEST_P(DeviceTest, AThreadThatEndsInARegionIsTold) {
  const auto entries = load({"leave_thread", "add"});
  for (int i = 0; i < 3; ++i) {
    Queue queue;
    ASSERT_TRUE(device_->launch(entries[0], {}, queue).ok());
    const std::string text = device_->wait(queue).text();
    ASSERT_NE(text.find("pthread_exit"), std::string::npos) << text;
    ASSERT_NE(text.find("leave_thread"), std::string::npos) << text;
  }
  const uint64_t result = room(8), arguments[] = {result, 40, 2};
  Queue queue;
  ASSERT_TRUE(device_->launch(entries[1], arguments, queue).ok());
  ASSERT_TRUE(device_->wait(queue).ok());
  EXPECT_EQ(value_at<uint64_t>(result), 42U);
}

TEST_P(DeviceTest, AKilledExecutorEndsAllThatIsUnderway) {
  const auto entries = load({"meet"});
  const uint64_t zero = 0;
  std::latch launched(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const uint64_t own = room(8);
      Queue queue;
      EXPECT_TRUE(device_->write(own, &zero, 8, queue).ok());
      const uint64_t arguments[] = {own};
      EXPECT_TRUE(device_->launch(entries[0], arguments, queue).ok());
      uint64_t value;
      EXPECT_TRUE(device_->read(&value, own, 8, queue).ok());
      launched.count_down();
      EXPECT_EQ(device_->wait(queue).code(), OFFPATH_ERR_SERVICE_LOST);
    });
  }
  launched.wait();
  process_.kill_it();
  for (std::thread& thread : threads) thread.join();
  EXPECT_NE(std::string(device_->state().text()).find("killed"), std::string::npos);
}

TEST_P(DeviceTest, TooManyArguments) {
  const auto entries = load({"add"});
  Queue queue;
  const std::vector<uint64_t> arguments(kMaxArguments + 1);
  EXPECT_EQ(device_->launch(entries[0], arguments, queue).code(), OFFPATH_ERR_ARGUMENT);
}

}  // namespace
}  // namespace offpath::device
