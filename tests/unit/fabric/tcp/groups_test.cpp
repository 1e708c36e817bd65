// SPDX-License-Identifier: BSD-3-Clause
// Groups of an endpoint, on a device that can multicast, in a network of the test's own. Needs root, and the tun driver.
#include "../own_network.hpp"
#include "base/clock.hpp"
#include "fabric/group.hpp"
#include "pair.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_tun.h>

#include <thread>

namespace offpath::fabric::tcp {
namespace {

constexpr const char* kDevice = "offpath0";

// There as long as the descriptor is open. Invalid: not permitted.
base::Fd make_device() {
  if (!testing::enter_own_network()) return {};
  base::Fd device(open("/dev/net/tun", O_RDWR | O_CLOEXEC));
  const base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  strcpy(request.ifr_name, kDevice);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (!device.valid() || ioctl(device.get(), TUNSETIFF, &request) != 0) return {};
  auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
  address = {};
  address.sin_family = AF_INET;
  inet_pton(AF_INET, "10.77.0.1", &address.sin_addr);
  bool good = ioctl(socket.get(), SIOCSIFADDR, &request) == 0;
  request.ifr_flags = IFF_UP | IFF_MULTICAST | IFF_BROADCAST;
  good &= ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
  return good ? std::move(device) : base::Fd();
}

struct Deaf : fabric::Hearer {
  void on_chunk(const Label&, Bytes) override {}
};

TEST(TcpGroups, SayHowLongWhatWasPushedTakes) {
  bool possible = false;
  std::thread([&] {
    const base::Fd device = make_device();
    possible = device.valid();
    if (!possible) return;
    Options options = quick();
    options.devices = kDevice;
    Side side(options);
    const auto joined = side->join({{1}, 0, 2, 0});
    ASSERT_TRUE(joined.ok()) << joined.status().text();
    Group& group = *joined.value();
    group.set_rate(1e-3);  // 1 MB/s
    const Data chunk(group.chunk_bytes(), 7);
    Deaf nobody;
    const uint64_t now = base::clock_ns();
    EXPECT_EQ(group.busy_ns(now), 0U);
    for (uint32_t i = 0; i < 200; ++i) {
      if (!group.push(1, i, chunk)) group.progress(now, nobody);
    }
    EXPECT_GT(group.busy_ns(now), 1'000'000U);
    EXPECT_GT(group.wait_ns(now), 0U);
    EXPECT_GT(group.counts().sent, 0U);
  }).join();  // namespaces belong to threads
  if (!possible) GTEST_SKIP() << "makes a device of its own, which needs root and the tun driver";
}

}  // namespace
}  // namespace offpath::fabric::tcp
