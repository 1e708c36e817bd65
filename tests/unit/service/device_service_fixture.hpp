// SPDX-License-Identifier: BSD-3-Clause
// A device service in a process of its own.
#pragma once

#include "device/device.hpp"
#include "device/handover.hpp"
#include "device/probe.hpp"
#include "device/starter.hpp"
#include "service/device_service.hpp"
#include "session/link.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

namespace offpath::service {

using base::Fd;
using device::Device;

inline constexpr int kTimeoutMs = 20000;

class DeviceServiceTest : public testing::Test {
 protected:
  void TearDown() override {
    if (process_ > 0) end(SIGTERM);
    std::filesystem::remove_all(folder_);
  }
  void start(Fd listening, DeviceServiceOptions options) {
    options.executor = OFFPATH_TEST_EXECUTOR;
    options.memory_bytes = 16 << 20;
    process_ = fork();
    if (process_ == 0) {
      DeviceService service(std::move(options));
      if (service.start().ok()) service.serve(listening.get());
      _exit(0);
    }
  }
  void start_local() {
    path_ = folder_ + "/devices";
    auto listening = session::listen_at(path_);
    ASSERT_TRUE(listening.ok());
    DeviceServiceOptions options;
    options.socket_path = path_;
    start(std::move(listening.value()), options);
  }
  void start_remote(uint32_t max_clients, const std::string& for_agents = "") {
    auto listening = DeviceService::listen_on("127.0.0.1:0");
    ASSERT_TRUE(listening.ok()) << listening.status().text();
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    getsockname(listening->get(), reinterpret_cast<sockaddr*>(&address), &length);
    entry_.host = "127.0.0.1";
    entry_.port = ntohs(address.sin_port);
    DeviceServiceOptions options;
    options.max_clients = max_clients;
    options.key = key_;
    options.for_agents = for_agents;
    options.munge = munge_;
    start(std::move(listening.value()), options);
  }
  base::Result<std::unique_ptr<Device>> open_local() {
    auto socket = device::connect_local(path_);
    if (!socket.ok()) return socket.status();
    return Device::open(std::move(socket.value()), {"local", 0, kTimeoutMs});
  }
  // What a starter answers that runs the script, and the token that the script was given.
  base::Result<std::string> ask(const std::string& wishes, uint8_t first = 1) {
    const std::string key_file = write_file("key", std::string(32, 'k'));
    setenv("OFFPATH_DEVICE_KEY_FILE", key_file.c_str(), 1);
    uint8_t token[OFFPATH_TOKEN_BYTES] = {first, 'o', 'k'};
    auto answer = device::ask_starter("127.0.0.1:" + std::to_string(entry_.port) + wishes, token, kTimeoutMs);
    unsetenv("OFFPATH_DEVICE_KEY_FILE");
    return answer;
  }
  base::Result<std::string> probed() {
    setenv("OFFPATH_DEVICE_KEY_FILE", write_file("key", std::string(32, 'k')).c_str(), 1);
    auto about = device::probe("127.0.0.1:" + std::to_string(entry_.port), kTimeoutMs);
    unsetenv("OFFPATH_DEVICE_KEY_FILE");
    return about;
  }
  void start_starter(const std::string& script, uint32_t max_clients = 8) {
    key_ = device::read_key(write_file("key", std::string(32, 'k'))).value();
    const std::string path = write_file("script", "#!/bin/sh\n" + script);
    chmod(path.c_str(), 0700);
    start_remote(max_clients, path);
  }
  static std::string make_folder() {
    std::string path = testing::TempDir() + "offpath-device-service-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    return path;
  }
  std::string write_file(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    unlink(path.c_str());
    Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    EXPECT_EQ(write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return path;
  }
  base::Result<std::unique_ptr<Device>> open_remote(const device::Key& key) {
    auto socket = device::connect_remote(entry_, key, kTimeoutMs);
    if (!socket.ok()) return socket.status();
    return Device::open(std::move(socket.value()), {"remote", 1, kTimeoutMs});
  }
  // Somebody who has said this, and says no more.
  Fd stranger_with(const std::string& words) const {
    auto socket = device::dial(entry_, kTimeoutMs);
    EXPECT_TRUE(socket.ok()) << socket.status().text();
    if (!socket.ok()) return {};
    static_cast<void>(send(socket->get(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
    return std::move(socket.value());
  }
  // What may be MUNGE's, cut in its length or behind it.
  static std::string half_a_credential(int number) {
    return std::string("OFPM\0\1\0\0MUNGE:", 14).substr(0, 4 + number % 11);
  }
  static size_t children_of(pid_t process) {
    std::ifstream list("/proc/" + std::to_string(process) + "/task/" + std::to_string(process) + "/children");
    return static_cast<size_t>(std::distance(std::istream_iterator<int>(list), {}));
  }
  static void expect_sent_away(const Fd& stranger) {
    char byte;
    pollfd wait{stranger.get(), POLLIN, 0};
    ASSERT_GT(poll(&wait, 1, kTimeoutMs), 0) << "it is held";
    EXPECT_LE(recv(stranger.get(), &byte, 1, 0), 0);
  }
  int end(int signal) {
    if (signal != 0) kill(process_, signal);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return status;
  }
  // Blocks until the executor's end has been heard.
  static void wait_until_lost(Device& device) {
    while (device.state().ok()) sched_yield();
  }

  const std::string folder_ = make_folder();
  std::string path_;
  device::DeviceEntry entry_;
  device::Key key_{1, 2, 3};
  bool munge_ = false;
  pid_t process_ = -1;
};

}  // namespace offpath::service
