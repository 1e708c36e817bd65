// SPDX-License-Identifier: BSD-3-Clause
// Groups over real sockets, in a network of their own; needs root. What is lost is up to the kernel, so no test counts on
// anything to arrive that is not pushed and taken in turns.
#include "fabric/multicast/group.hpp"

#include "../own_network.hpp"
#include "base/clock.hpp"
#include "task_run.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

namespace offpath::fabric::multicast {
namespace {

using Data = std::vector<uint8_t>;

// Namespaces belong to threads.
void in_own_network(const std::function<void()>& what) {
  bool entered = false;
  std::thread([&] {
    entered = offpath::testing::enter_own_network();
    if (entered) what();
  }).join();
  if (!entered) GTEST_SKIP() << "makes a network of its own, which needs root";
}

struct Heard : Hearer {
  void on_chunk(const Label& label, Bytes chunk) override {
    chunks[{label.sender, label.task, label.chunk}] = Data(chunk.begin(), chunk.end());
  }
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, Data> chunks;
};

GroupOptions options_of(uint32_t own, uint32_t members) {
  GroupOptions options;
  options.secret = {1, 2, 3};
  options.team = {4, 5, 6};
  options.own = own;
  options.members = members;
  options.chunk_bytes = 1000;
  options.socket.device = "lo";
  return options;
}

struct Member {
  explicit Member(const GroupOptions& options) {
    auto opened = UdpGroup::open(options);
    EXPECT_TRUE(opened.ok()) << opened.status().text();
    if (opened.ok()) group = std::move(opened.value());
  }
  bool progress() { return group->progress(base::clock_ns(), heard); }
  void push(uint64_t task, uint32_t chunk, const Data& bytes) {
    while (!group->push(task, chunk, bytes)) progress();
  }
  std::unique_ptr<UdpGroup> group;
  Heard heard;
};

Data pattern(uint32_t seed, size_t bytes) {
  Data out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(seed * 31 + i * 7);
  return out;
}

// On a loopback device what was sent is there.
void settle(std::vector<Member>& members) {
  for (bool more = true; more;) {
    more = false;
    for (Member& member : members) more = member.progress() || more;
  }
}

TEST(MulticastGroup, EverybodyHearsEverybodyElse) {
  in_own_network([] {
    for (const bool segments : {true, false}) {
      for (const bool encrypts : {false, true}) {
        std::vector<Member> members;
        for (uint32_t own = 0; own < 3; ++own) {
          GroupOptions options = options_of(own, 3);
          options.encrypts = encrypts;
          options.socket.segments = segments;
          members.emplace_back(options);
        }
        for (uint32_t own = 0; own < 3; ++own) {
          for (uint32_t chunk = 0; chunk < 100; ++chunk) {
            members[own].push(9, chunk, pattern(own + chunk, 1000));
            if (chunk % 50 == 49) settle(members);  // nothing is to be dropped here
          }
          members[own].push(9, 100, pattern(own, 17));  // ends its batch
          members[own].push(9, 101, {});
          settle(members);
        }
        for (uint32_t own = 0; own < 3; ++own) {
          EXPECT_EQ(members[own].heard.chunks.size(), 2u * 102);
          EXPECT_EQ(members[own].group->counts().sent, 102u);
          EXPECT_EQ(members[own].group->counts().refused, 0u);
          for (const auto& [key, bytes] : members[own].heard.chunks) {
            const auto [sender, task, chunk] = key;
            EXPECT_EQ(task, 9u);
            EXPECT_NE(sender, own);
            EXPECT_EQ(bytes, chunk < 100 ? pattern(sender + chunk, 1000) : pattern(sender, chunk == 100 ? 17 : 0));
          }
        }
      }
    }
  });
}

TEST(MulticastGroup, DoesNotListenToStrangers) {
  in_own_network([] {
    std::vector<Member> members;
    for (uint32_t own = 0; own < 2; ++own) members.emplace_back(options_of(own, 2));
    Keys keys({1, 2, 3}, {4, 5, 6}, 2, false);
    const sockaddr_in address = address_of(keys.group());
    const base::Fd stranger(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const ip_mreqn device{{}, {}, static_cast<int>(if_nametoindex("lo"))};
    ASSERT_EQ(setsockopt(stranger.get(), IPPROTO_IP, IP_MULTICAST_IF, &device, sizeof(device)), 0);
    const auto say = [&](const Data& bytes) {
      EXPECT_EQ(sendto(stranger.get(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&address),
                       sizeof(address)),
                static_cast<ssize_t>(bytes.size()));
    };
    Keys others({1, 2, 3}, {4, 5, 7}, 2, false), thieves({9}, {4, 5, 6}, 2, false);
    for (uint32_t i = 0; i < 20; ++i) {
      say(pattern(i, 50 * i));
      Data datagram(100 + kAroundBytes);
      others.seal({9, i, 0}, pattern(i, 100), datagram.data());
      say(datagram);
      thieves.seal({9, i, 0}, pattern(i, 100), datagram.data());
      std::copy(keys.group().begin(), keys.group().end(), datagram.begin() + 4);
      say(datagram);
      settle(members);
    }
    members[0].push(9, 3, {1, 2, 3});
    settle(members);
    EXPECT_EQ(members[1].heard.chunks.size(), 1u);
    EXPECT_EQ(members[0].heard.chunks.size(), 0u);
    EXPECT_EQ(members[1].group->counts().received, 1u);
    EXPECT_EQ(members[1].group->counts().refused, 60u);
  });
}

TEST(MulticastGroup, SaysWhyItCannotBe) {
  in_own_network([] {
    GroupOptions options = options_of(0, 2);
    options.socket.device = "nosuch0";
    EXPECT_FALSE(UdpGroup::open(options).ok());
    options = options_of(0, 2);
    options.chunk_bytes = 1 << 17;
    EXPECT_FALSE(UdpGroup::open(options).ok());
    EXPECT_FALSE(UdpGroup::open(options_of(2, 2)).ok());
    EXPECT_FALSE(UdpGroup::open(options_of(0, 1)).ok());
    options = options_of(0, 2);
    options.chunk_bytes = 0;
    EXPECT_EQ(UdpGroup::open(options).value()->chunk_bytes(), kMaxDatagramBytes - kAroundBytes);
  });
}

TEST(MulticastGroup, WaitsWhereItsPaceIsSpent) {
  in_own_network([] {
    GroupOptions options = options_of(0, 2);
    options.bytes_per_ns = 0.001;
    Member sender(options);
    uint64_t now = 1'000'000'000;
    uint64_t last = 0;
    for (uint32_t chunk = 0; chunk < 200; ++chunk) {
      while (!sender.group->push(1, chunk, pattern(chunk, 1000))) {
        const uint64_t wait = sender.group->wait_ns(now);
        EXPECT_TRUE(wait == 0 || !sender.group->progress(now, sender.heard));
        now += wait;
        sender.group->progress(now, sender.heard);
        last = now;
      }
    }
    // What went before the last batch, less what may be saved up, at a byte per microsecond.
    const double before = static_cast<double>(sender.group->counts().sent) * (1000 + kAroundBytes + 66);
    EXPECT_GT(static_cast<double>(last - 1'000'000'000), (before - 2 * kMaxDatagramBytes - 64 * 66) * 1000);
  });
}

// What the kernel drops, as the sockets have next to no room, is fetched.
TEST(MulticastGroup, WhatAFullSocketDropsIsRepaired) {
  in_own_network([] {
    std::vector<std::unique_ptr<Group>> groups;
    for (uint32_t own = 0; own < 4; ++own) {
      GroupOptions options = options_of(own, 4);
      options.socket.receive_buffer_bytes = 20'000;
      auto group = UdpGroup::open(options);
      ASSERT_TRUE(group.ok()) << group.status().text();
      groups.push_back(std::move(group.value()));
    }
    const auto result = offpath::testing::run_task(groups, 5, 300);
    EXPECT_TRUE(result.right);
    EXPECT_GT(result.repaired, 0u);
    EXPECT_GT(result.heard, 0u);
    EXPECT_GE(result.repaired + result.heard, 4u * 3 * 300);
  });
}

}  // namespace
}  // namespace offpath::fabric::multicast
