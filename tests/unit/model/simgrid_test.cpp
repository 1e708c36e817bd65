// SPDX-License-Identifier: BSD-3-Clause
// Contention: many transfers at once over shared links must end when SimGrid says that they end.
#include "model/network.hpp"

#include <gtest/gtest.h>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

#include <cstdlib>
#include <functional>
#include <random>
#include <string>

namespace offpath::model {
namespace {

namespace s4u = simgrid::s4u;

constexpr uint32_t kNodes = 8;
constexpr int kTransfers = 60;
constexpr double kBytesPerSecond = 125e6, kLatencyS = 20e-6;

// What a platform is made of has other names in SimGrid 4, which brings the outermost zone.
#if SIMGRID_VERSION_MAJOR >= 4
s4u::NetZone* add_zone(s4u::Engine& engine) { return engine.get_netzone_root()->add_netzone_full("zone"); }
s4u::Host* add_host(s4u::NetZone* zone, const std::string& name) { return zone->add_host(name, 1e9); }
s4u::Link* add_link(s4u::NetZone* zone, const std::string& name) { return zone->add_link(name, kBytesPerSecond); }
void add_route(s4u::NetZone* zone, s4u::Host* from, s4u::Host* to, const std::vector<s4u::LinkInRoute>& links) {
  zone->add_route(from, to, links, false);
}
void add_actor(s4u::Host* host, const std::function<void()>& code) { s4u::Engine::add_actor("transfer", host, code); }
#else
s4u::NetZone* add_zone(s4u::Engine&) { return s4u::create_full_zone("zone"); }
s4u::Host* add_host(s4u::NetZone* zone, const std::string& name) { return zone->create_host(name, 1e9); }
s4u::Link* add_link(s4u::NetZone* zone, const std::string& name) { return zone->create_link(name, kBytesPerSecond); }
void add_route(s4u::NetZone* zone, s4u::Host* from, s4u::Host* to, const std::vector<s4u::LinkInRoute>& links) {
  zone->add_route(from->get_netpoint(), to->get_netpoint(), nullptr, nullptr, links, false);
}
void add_actor(s4u::Host* host, const std::function<void()>& code) { s4u::Actor::create("transfer", host, code); }
#endif

struct Transfer {
  uint32_t from, to;
  double start_s, bytes, end_s;
};

std::vector<Transfer> random_transfers() {
  const char* given = std::getenv("OFFPATH_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<uint32_t>(std::stoul(given)) : std::random_device()();
  std::printf("OFFPATH_TEST_SEED=%u\n", seed);
  std::mt19937 random(seed);
  std::vector<Transfer> transfers;
  for (int i = 0; i < kTransfers; ++i) {
    const uint32_t from = random() % kNodes;
    const uint32_t to = (from + 1 + random() % (kNodes - 1)) % kNodes;
    transfers.push_back({from, to, (random() % 1000) * 1e-5, 1e5 + random() % 2'000'000, 0});
  }
  return transfers;
}

void run_simgrid(std::vector<Transfer>& transfers) {
  int argc = 1;
  char name[] = "test", *argv[] = {name, nullptr};
  s4u::Engine engine(&argc, argv);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/loopback-lat:0");
  s4u::NetZone* zone = add_zone(engine);
  std::vector<s4u::Host*> hosts;
  std::vector<const s4u::Link*> up, down;
  for (uint32_t node = 0; node < kNodes; ++node) {
    hosts.push_back(add_host(zone, std::to_string(node)));
    up.push_back(add_link(zone, "up" + std::to_string(node))->set_latency(kLatencyS / 2)->seal());
    down.push_back(add_link(zone, "down" + std::to_string(node))->set_latency(kLatencyS / 2)->seal());
  }
  for (uint32_t a = 0; a < kNodes; ++a) {
    for (uint32_t b = 0; b < kNodes; ++b) {
      if (a != b) add_route(zone, hosts[a], hosts[b], {s4u::LinkInRoute(up[a]), s4u::LinkInRoute(down[b])});
    }
  }
  zone->seal();
  for (Transfer& transfer : transfers) {
    add_actor(hosts[transfer.from], [&transfer, &hosts] {
      s4u::this_actor::sleep_until(transfer.start_s);
      s4u::Comm::sendto(hosts[transfer.from], hosts[transfer.to], static_cast<uint64_t>(transfer.bytes));
      transfer.end_s = s4u::Engine::get_clock();
    });
  }
  engine.run();
}

TEST(Network, SharesLinksAsSimGridDoes) {
  std::vector<Transfer> transfers = random_transfers();
  run_simgrid(transfers);
  Events events;
  Network network(events, {kBytesPerSecond / 1e9, kBytesPerSecond / 1e9, 0, kLatencyS * 1e9}, kNodes);
  std::vector<double> end_ns(transfers.size());
  for (size_t i = 0; i < transfers.size(); ++i) {
    events.at(transfers[i].start_s * 1e9, [&, i] {
      network.send(i, {transfers[i].from, transfers[i].to}, transfers[i].bytes,
                   [&, i] { end_ns[i] = events.now_ns(); });
    });
  }
  while (events.step()) {
  }
  for (size_t i = 0; i < transfers.size(); ++i) {
    const double theirs = transfers[i].end_s - transfers[i].start_s, ours = end_ns[i] / 1e9 - transfers[i].start_s;
    EXPECT_NEAR(ours / theirs, 1, 0.02) << "transfer " << i;
  }
}

}  // namespace
}  // namespace offpath::model
