// SPDX-License-Identifier: BSD-3-Clause
#include "device/connect.hpp"
#include "device/introduction.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>
#include <future>

namespace offpath::device {
namespace {

using base::Fd;
using base::Status;

struct Port {
  Fd listening{socket(AF_INET, SOCK_STREAM, 0)};
  DeviceEntry entry;
  Port() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(listening.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listening.get(), 8), 0);
    getsockname(listening.get(), reinterpret_cast<sockaddr*>(&address), &length);
    entry.host = "127.0.0.1";
    entry.port = ntohs(address.sin_port);
  }
  Fd accepted() const { return Fd(accept(listening.get(), nullptr, nullptr)); }
};

Key key_of(uint8_t byte) {
  Key key;
  key.fill(byte);
  return key;
}

// The service's side until it knows.
Introduction::Stage hear(int socket, uint8_t key) {
  Introduction who(key_of(key), false);
  pollfd wait{socket, POLLIN, 0};
  while (who.take(socket) == Introduction::Stage::hears && poll(&wait, 1, 5000) > 0) {
  }
  return who.stage();
}
using Stage = Introduction::Stage;

TEST(DeviceConnect, BothKnowTheKey) {
  const Port port;
  auto server = std::async(std::launch::async, [&] {
    const Fd socket = port.accepted();
    return hear(socket.get(), 1);
  });
  const auto client = connect_remote(port.entry, key_of(1), 5000);
  EXPECT_TRUE(client.ok()) << client.status().text();
  EXPECT_EQ(server.get(), Stage::proven);
}

TEST(DeviceConnect, AnotherKeyIsNoticedByBoth) {
  const Port port;
  auto server = std::async(std::launch::async, [&] {
    const Fd socket = port.accepted();
    return hear(socket.get(), 1);
  });
  const auto client = connect_remote(port.entry, key_of(2), 5000);
  EXPECT_EQ(client.status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_EQ(server.get(), Stage::refused);
}

TEST(DeviceConnect, GarbageEndsTheGreeting) {
  const Port port;
  auto server = std::async(std::launch::async, [&] {
    const Fd socket = port.accepted();
    return hear(socket.get(), 1);
  });
  Fd client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port.entry.port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const std::string text = "GET / HTTP/1.1\r\nHost: somebody.example\r\n\r\n.......................";
  const std::string more = text + text + text;
  EXPECT_GT(send(client.get(), more.data(), more.size(), MSG_NOSIGNAL), 0);
  EXPECT_EQ(server.get(), Stage::refused);
}

TEST(DeviceConnect, SilenceIsBounded) {
  const Port port;
  const auto client = connect_remote(port.entry, key_of(1), 50);  // nobody accepts
  EXPECT_EQ(client.status().code(), OFFPATH_ERR_NO_SERVICE);
  EXPECT_EQ(std::string(client.status().text()).find("key"), std::string::npos);
}

TEST(DeviceConnect, AServiceThatClosesSaysNothingOfTheKey) {
  const Port port;
  auto server = std::async(std::launch::async, [&] { port.accepted(); });
  const auto client = connect_remote(port.entry, key_of(1), 5000);
  EXPECT_EQ(client.status().code(), OFFPATH_ERR_PERMISSION);
  EXPECT_NE(std::string(client.status().text()).find("with room for us"), std::string::npos);
}

TEST(DeviceConnect, KeyFiles) {
  const std::string path = testing::TempDir() + "offpath-key-" + std::to_string(getpid());
  std::ofstream(path) << "0123456789abcdef";
  chmod(path.c_str(), 0644);
  EXPECT_EQ(read_key(path).status().code(), OFFPATH_ERR_PERMISSION);
  chmod(path.c_str(), 0600);
  EXPECT_TRUE(read_key(path).ok());
  std::ofstream(path) << "short";
  EXPECT_EQ(read_key(path).status().code(), OFFPATH_ERR_ARGUMENT);
  unlink(path.c_str());
  EXPECT_FALSE(read_key(path).ok());
}

}  // namespace
}  // namespace offpath::device
