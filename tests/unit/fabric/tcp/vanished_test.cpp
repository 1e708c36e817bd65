// SPDX-License-Identifier: BSD-3-Clause
// A host that vanishes: no end of a connection is ever said. In a network of its own, which is there or not; needs
// root.
#include "../own_network.hpp"
#include "pair.hpp"

#include <poll.h>
#include <sys/wait.h>

#include <fstream>
#include <sstream>

namespace offpath::fabric::tcp {
namespace {

constexpr int kNoNetworks = 77;

// Whether nothing is under way in this network: kernels answer each other after a while.
bool all_confirmed() {
  std::ifstream table("/proc/self/net/tcp");
  std::string line, number, local, remote, state, queues;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream(line) >> number >> local >> remote >> state >> queues;
    if (queues.substr(0, queues.find(':')).find_first_not_of('0') != std::string::npos) return false;
  }
  return true;
}

// Both are idle: neither has sent anything for the other to answer. Exit status of the process.
int lose_each_other() {
  if (!offpath::testing::enter_own_network()) return kNoNetworks;
  Options options = quick();
  options.sockets.idle_seconds = options.sockets.probe_seconds = options.sockets.probes = 1;
  Side a(options), b(options);
  a->send(a->connect(b->address()).value(), Data{1}, {}, 0);
  b->send(b->connect(a->address()).value(), Data{2}, {}, 0);
  const auto step = [&] { a->progress(), b->progress(); };
  if (!run_until([&] { return a.hears->messages.size() + b.hears->messages.size() == 2; }, step)) return 2;
  if (!run_until(all_confirmed, step)) return 2;
  if (!offpath::testing::set_loopback(false)) return 3;
  // They sleep until the kernel gives up.
  const auto sleep = [&] {
    pollfd waits[2] = {{a->event_fd(), POLLIN, 0}, {b->event_fd(), POLLIN, 0}};
    if (a->arm() && b->arm()) poll(waits, 2, 1000);
    step();
  };
  if (!run_until([&] { return a.hears->lost.size() + b.hears->lost.size() == 2; }, sleep)) return 4;
  return 0;
}

TEST(TcpVanished, IsNoticedByWhoIsIdle) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(lose_each_other());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoNetworks) GTEST_SKIP() << "makes a network of its own, which needs root";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// What the kernel is told outside tests: see docs/design/0016-fabric-tcp.md.
TEST(TcpVanished, AfterFiftySeconds) {
  const SocketOptions usual;
  EXPECT_EQ(usual.idle_seconds + usual.probe_seconds * usual.probes, 50);
}

}  // namespace
}  // namespace offpath::fabric::tcp
