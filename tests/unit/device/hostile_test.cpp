// SPDX-License-Identifier: BSD-3-Clause
// Either end of a channel against somebody who does not keep to the protocol: an error, never a crash or a hang.
#include "device/frames.hpp"
#include "executor_process.hpp"

#include <gtest/gtest.h>

#include <random>
#include <thread>

namespace offpath::device {
namespace {

using base::Fd;

struct Pair {
  Fd host, executor;
  Pair() {
    int sockets[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    host = Fd(sockets[0]);
    executor = Fd(sockets[1]);
  }
};

Description plausible() {
  Description description;
  description.machine = 62;
  description.heap_address = 0x7000'0000'0000;
  description.heap_bytes = 1 << 20;
  return description;
}

TEST(HostileExecutor, AnythingInsteadOfHello) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 200; ++i) {
    Pair pair;
    std::vector<uint8_t> bytes(600);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
    if (i % 2 == 0) encode_header({Kind::hello, Description::kBytes, 0}, std::span(bytes).first<kFrameHeaderBytes>());
    ASSERT_GT(send(pair.executor.get(), bytes.data(), bytes.size(), 0), 0);
    EXPECT_FALSE(Device::open(std::move(pair.host), {"hostile", 0, 2000}).ok());
  }
}

TEST(HostileExecutor, SilenceAndClosing) {
  Pair silent;
  EXPECT_EQ(Device::open(std::move(silent.host), {"silent", 0, 20}).status().code(), OFFPATH_ERR_NO_SERVICE);
  Pair closing;
  closing.executor.reset();
  EXPECT_EQ(Device::open(std::move(closing.host), {"closing", 0, 2000}).status().code(), OFFPATH_ERR_SERVICE_LOST);
}

TEST(HostileExecutor, ASegmentThatIsNone) {
  for (const uint64_t bytes : {uint64_t{4096}, uint64_t{1} << 40, uint64_t{257} << 20}) {
    Pair pair;
    Description description = plausible();
    description.segment_bytes = bytes;
    ASSERT_TRUE(send_hello(pair.executor.get(), description, -1).ok());
    EXPECT_FALSE(Device::open(std::move(pair.host), {"hostile", 0, 2000}).ok());
  }
}

TEST(HostileExecutor, FramesThatMakeNoSenseEndTheChannel) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 300; ++i) {
    Pair pair;
    ASSERT_TRUE(send_hello(pair.executor.get(), plausible(), -1).ok());
    auto device = Device::open(std::move(pair.host), {"hostile", 0, 2000});
    ASSERT_TRUE(device.ok());
    Queue queue;
    ASSERT_TRUE(device.value()->launch(1234, {}, queue).ok());
    uint8_t target[64];
    ASSERT_TRUE(device.value()->read(target, plausible().heap_address, sizeof(target), queue).ok());
    std::vector<uint8_t> body(random() % 1000);
    for (auto& byte : body) byte = static_cast<uint8_t>(random());
    const FrameHeader header{static_cast<Kind>(random() % 14),
                             static_cast<uint32_t>(i % 3 == 0 ? random() : body.size()), random() % 4};
    [[maybe_unused]] const auto sent = send_frame(pair.executor.get(), header, body);
    pair.executor.reset();
    EXPECT_FALSE(device.value()->wait(queue).ok());
    EXPECT_FALSE(device.value()->state().ok());
  }
}

// Whoever has seen the device alive waits for what it has posted since.
TEST(HostileExecutor, AReadPostedAfterTheEndIsOver) {
  Pair pair;
  const auto channel = open_stream_channel(std::move(pair.host), plausible(), {});
  ASSERT_TRUE(channel.ok());
  pair.executor.reset();
  while (!channel.value()->lost()) std::this_thread::yield();
  PendingRead read;
  EXPECT_EQ(channel.value()->post_read(read, 0).code(), OFFPATH_ERR_SERVICE_LOST);
  EXPECT_EQ(channel.value()->finish_read(read).code(), OFFPATH_ERR_SERVICE_LOST);
  channel.value()->close();
}

class HostileHost : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Channel, HostileHost, testing::Values("segment", "stream"),
                         [](const auto& channel) { return std::string(channel.param); });

// The process must end by itself: the destructor waits for it.
TEST_P(HostileHost, GarbageEndsTheExecutor) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 3; ++i) {
    ExecutorProcess process(GetParam());
    Fd socket = process.take_socket();
    ASSERT_TRUE(receive_hello(socket.get(), 10000).ok());
    std::vector<uint8_t> bytes(5000);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(random());
    [[maybe_unused]] const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
}

TEST(HostileStream, PutsOutsideTheHeapEndTheChannel) {
  ExecutorProcess process("stream");
  Fd socket = process.take_socket();
  const auto hello = receive_hello(socket.get(), 10000);
  ASSERT_TRUE(hello.ok());
  Command command;
  command.kind = Kind::put;
  command.words[0] = hello->description.heap_address + hello->description.heap_bytes - 4;
  command.words[1] = 8;
  ASSERT_TRUE(send_command(socket.get(), command).ok());
  uint8_t byte;
  EXPECT_EQ(Line(socket.get()).receive(&byte, 1, 20000).code(), OFFPATH_ERR_SERVICE_LOST);
}

}  // namespace
}  // namespace offpath::device
