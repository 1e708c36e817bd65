// SPDX-License-Identifier: BSD-3-Clause
// What becomes of the RDMA fabric where cards, networks, limits and other sides are not as one wishes: with cards that are none
// (fake_verbs.hpp).
#include "fabric/rdma/endpoint.hpp"

#include "base/log.hpp"

#include "../each_fabric.hpp"
#include "fake_verbs.hpp"

#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace offpath::fabric {
namespace {

using offpath::testing::cards;
using offpath::testing::FakePort;

constexpr size_t kLong = 1 << 20;
constexpr JobKey kKey{1, 2, 3};

class RdmaFaults : public ::testing::Test {
 protected:
  // One side, as of one node.
  struct Side {
    std::unique_ptr<Context> context;
    std::unique_ptr<Fabric> fabric;
    std::unique_ptr<Recorder> heard;
    rdma::Endpoint* with_card() const { return dynamic_cast<rdma::Endpoint*>(fabric.get()); }
    RdmaCounts counts() const { return rdma_counts(*fabric); }
  };

  RdmaFaults() {
    unsetenv("OFFPATH_FABRIC_SECURITY");
    setenv("OFFPATH_UCX_NET_DEVICES", "lo", 1);
    base::log_open(log_.c_str(), base::LogLevel::warn);
  }
  ~RdmaFaults() override {
    sides_.clear();
    offpath::testing::start_anew();
    base::log_open("", base::LogLevel::warn);
    std::filesystem::remove(log_);
  }
  Side& make(bool with_card = true) {
    auto context = with_card ? open_rdma(kKey) : open_tcp(kKey);
    EXPECT_TRUE(context.ok()) << context.status().text();
    auto fabric = context.value()->make_endpoint();
    EXPECT_TRUE(fabric.ok()) << fabric.status().text();
    Side& side = *sides_.emplace_back(std::make_unique<Side>());
    side.context = std::move(context.value()), side.fabric = std::move(fabric.value());
    side.heard = std::make_unique<Recorder>(*side.fabric);
    return side;
  }
  bool until(const std::function<bool()>& done) {
    const auto end = Clock::now() + kPatience;
    while (!done() && Clock::now() < end) progress();
    return done();
  }
  void progress() {
    for (const auto& side : sides_) side->fabric->progress();
  }
  void settle() {
    for (int i = 0; i < 2000; ++i) progress();
  }
  static Peer to(Side& from, Side& other) {
    const auto peer = from.fabric->connect(other.fabric->address());
    EXPECT_TRUE(peer.ok()) << peer.status().text();
    return peer.value();
  }
  // Whether it comes, whole. `steady`: at the sender.
  bool exchange(Side& from, Side& other, size_t bytes = kLong) {
    const Peer peer = to(from, other);
    Data payload(bytes, static_cast<uint8_t>(++last_));
    const auto came = [&](const auto& each) { return each.second == payload; };
    from.fabric->send(peer, Data{1}, payload, last_, Of::user_data);
    const auto& heard = other.heard->messages;
    return until([&] { return from.heard->sent.contains(last_) && std::any_of(heard.begin(), heard.end(), came); }) &&
           from.heard->sent[last_];
  }
  void meet(Side& from, Side& other) {
    ASSERT_TRUE(exchange(from, other));
    settle();
    const uint64_t before = other.counts().read_bytes;
    ASSERT_TRUE(exchange(from, other));
    ASSERT_GT(other.counts().read_bytes, before);
  }
  std::vector<std::string> log() const {
    std::vector<std::string> lines;
    std::ifstream file(log_);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  size_t logged(const std::string& words) const {
    const auto lines = log();
    return static_cast<size_t>(std::count_if(
        lines.begin(), lines.end(), [&](const std::string& line) { return line.find(words) != std::string::npos; }));
  }

  std::vector<std::unique_ptr<Side>> sides_;
  uint64_t last_ = 0;
  const std::string log_ = ::testing::TempDir() + "offpath_rdma_faults_" + std::to_string(getpid());
};

// Nodes of a job need not be alike.
TEST_F(RdmaFaults, ASideWithoutACardIsReachedByTcp) {
  Side &a = make(), &b = make(false);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(exchange(a, b) && exchange(b, a));
  EXPECT_EQ(a.counts().read_bytes + cards().reads, 0U);
  EXPECT_TRUE(log().empty());
}

// One line, and then TCP: a card that is there and cannot be used is no reason to offload nothing.
TEST_F(RdmaFaults, ACardThatCannotBeUsedIsSaidOnce) {
  cards().has_queues = false;
  Side& a = make();
  EXPECT_EQ(a.with_card(), nullptr);
  EXPECT_EQ(logged("cannot have completions of an RDMA device"), 1U);
  cards().has_queues = true;
  cards().most_locked = 100 << 10;  // as with `ulimit -l`
  Side& b = make();
  EXPECT_EQ(b.with_card(), nullptr);
  EXPECT_EQ(logged("ulimit -l"), 1U);
  cards().most_locked = SIZE_MAX;
  Side& c = make();
  ASSERT_NE(c.with_card(), nullptr);
  EXPECT_TRUE(exchange(a, c) && exchange(c, b) && exchange(a, b));
}

TEST_F(RdmaFaults, MemoryThatMayNotBeLockedIsCopied) {
  Side &a = make(), &b = make();
  meet(a, b);
  const uint64_t read = b.counts().read_bytes, by_tcp = a.counts().other_bytes;
  cards().most_locked = cards().locked;
  const size_t lines = log().size();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(exchange(a, b, 2 * kLong + i));
  EXPECT_EQ(b.counts().read_bytes, read);
  EXPECT_GT(a.counts().other_bytes, by_tcp + 6 * kLong - 1);
  EXPECT_EQ(logged("Raise the limit of locked memory: ulimit -l unlimited"), 1U);
  EXPECT_EQ(log().size(), lines + 1);
}

// Cards that know of each other, and a network that does not carry it: another subnet, a firewall, a wrong length of packets.
TEST_F(RdmaFaults, WhereNoPacketArrivesTcpCarriesAll) {
  cards().reaches = false;
  Side &a = make(), &b = make();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(exchange(a, b) && exchange(b, a));
    settle();
  }
  EXPECT_EQ(a.counts().read_bytes + b.counts().read_bytes, 0U);
  EXPECT_TRUE(a.heard->lost.empty() && b.heard->lost.empty());
  EXPECT_EQ(logged("does not reach"), 2U) << "once at each side";
  EXPECT_EQ(cards().connections, 0U);
}

// Who answers few reads at once must not be asked for more: it would end the connection.
TEST_F(RdmaFaults, DevicesOfDifferentKindsRead) {
  Side& a = make();
  cards().reads_answered = 1;
  Side& b = make();
  meet(a, b);
  meet(b, a);
}

TEST_F(RdmaFaults, AConnectionThatBreaksIsALostPeer) {
  Side &a = make(), &b = make();
  meet(a, b);
  cards().reaches = false;
  const Data payload(kLong, 9);
  for (uint64_t i = 1; i <= 3; ++i) a.fabric->send(to(a, b), Data{2}, payload, 100 + i, Of::user_data);
  ASSERT_TRUE(until([&] { return !b.heard->lost.empty() || !a.heard->lost.empty(); }));
  ASSERT_TRUE(until([&] { return a.heard->sent.contains(103); }));
  ASSERT_TRUE(until([&] { return b.heard->fetching.empty(); }));
  EXPECT_FALSE(a.heard->sent[101]);
  EXPECT_EQ(logged("the RDMA connection with peer service"), 1U) << "for all of its reads";
}

TEST_F(RdmaFaults, ReadsUnderWayEndBeforeTheirBuffersAreGivenBack) {
  Side &a = make(), &b = make();
  meet(a, b);
  cards().holds = true;
  const Data payload(kLong, 9);
  a.fabric->send(to(a, b), Data{2}, payload, 101, Of::user_data);
  ASSERT_TRUE(until([&] { return cards().under_way() == 1; }));
  settle();
  EXPECT_FALSE(b.heard->fetching.empty());
  a.fabric.reset();  // with its connections
  std::erase_if(sides_, [](const auto& side) { return side->fabric == nullptr; });
  ASSERT_TRUE(until([&] { return !sides_[0]->heard->unfetched.empty(); }));
  EXPECT_EQ(cards().under_way(), 0U);
}

// The queue of completions has room for whatever may end, or nothing would ever be heard again.
TEST_F(RdmaFaults, NoMoreReadsThanTheQueueHolds) {
  cards().longest_queue = 100;
  Side& b = make();
  std::vector<Side*> others;
  for (int i = 0; i < 3; ++i) meet(*others.emplace_back(&make()), b);
  cards().holds = true;
  const Data payload(16 << 10, 3);
  for (Side* const each : others) {
    const Peer peer = to(*each, b);
    for (uint64_t i = 0; i < 80; ++i) each->fabric->send(peer, Data{3}, payload, 1000 + i, Of::user_data);
  }
  ASSERT_TRUE(until([&] { return b.heard->announced >= 3 * 80; }));
  settle();
  EXPECT_EQ(cards().under_way(), 100U);
  cards().release();
  ASSERT_TRUE(until([&] { return b.heard->messages.count({3}) == 3 * 80; }));
  EXPECT_EQ(cards().most_under_way, 100U);
}

TEST_F(RdmaFaults, LongPayloadsAreReadInPartsThatACardTakes) {
  cards().longest_message = 100000;
  Side &a = make(), &b = make();
  meet(a, b);
  ASSERT_TRUE(exchange(a, b, 5 * kLong + 3));
  EXPECT_EQ(cards().longest_read, 100000U);
  cards().longest_message = 1U << 31;
  Side& c = make();
  meet(a, c);
  ASSERT_TRUE(exchange(a, c, 20 * kLong + 3));
  EXPECT_EQ(cards().longest_read, 8 * kLong);
}

// Which TCP does, with more than that.
TEST_F(RdmaFaults, PayloadsThatNoFabricCarriesFail) {
  Side &a = make(), &b = make();
  meet(a, b);
  static const uint8_t begin = 0;
  a.fabric->send(to(a, b), Data{2}, Bytes(&begin, (size_t{4} << 30) + kLong), 99, Of::user_data);
  ASSERT_TRUE(until([&] { return a.heard->sent.contains(99); }));
  EXPECT_FALSE(a.heard->sent[99]);
  EXPECT_TRUE(exchange(a, b));
}

// Whoever waits for a card sleeps.
TEST_F(RdmaFaults, NobodySpinsWhileACardReads) {
  Side &a = make(), &b = make();
  meet(a, b);
  cards().holds = true;
  const auto sleeps = [&] {
    settle();
    pollfd wait{b.fabric->event_fd(), POLLIN, 0};
    return b.fabric->arm() && poll(&wait, 1, 0) == 0;
  };
  b.heard->policy = OnAnnounced::keep;
  std::vector<uint8_t> places[2];  // not steady, so they take turns in memory that is
  const Data payload(kLong, 7);
  for (uint64_t i = 0; i < 2; ++i) {
    a.fabric->send(to(a, b), Data{4}, payload, 200 + i, Of::user_data);
    ASSERT_TRUE(until([&] { return !b.heard->waiting.empty(); }));
    places[i].resize(kLong);
    b.heard->fetching[300 + i] = {b.heard->waiting.front().header, {}};
    b.fabric->fetch(b.heard->waiting.front().handle, places[i].data(), kLong, 300 + i);
    EXPECT_FALSE(b.fabric->arm()) << "it was not begun";
    b.heard->waiting.pop_front();
  }
  EXPECT_TRUE(sleeps());
  cards().release();
  pollfd wait{b.fabric->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 1);
  ASSERT_TRUE(until([&] { return b.heard->fetching.empty(); }));
  for (const auto& place : places) EXPECT_TRUE(std::equal(place.begin(), place.end(), payload.begin(), payload.end()));
}

TEST_F(RdmaFaults, ADeviceThatIsGoneLosesItsPeersAndNothingHangs) {
  Side &a = make(), &b = make();
  meet(a, b);
  cards().holds = true;
  const Data payload(kLong, 9);
  a.fabric->send(to(a, b), Data{2}, payload, 101, Of::user_data);
  ASSERT_TRUE(until([&] { return cards().under_way() == 1; }));
  settle();
  ASSERT_TRUE(b.fabric->arm());
  cards().remove();
  pollfd wait{b.fabric->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 1);
  const auto arm_all = [&] { return a.fabric->arm(), b.fabric->arm(); };
  ASSERT_TRUE(until([&] { return arm_all(), !b.heard->unfetched.empty() && a.heard->sent.contains(101); }));
  EXPECT_FALSE(a.heard->sent[101]);
  EXPECT_EQ(logged("has failed or was removed"), 2U);
  settle();
  EXPECT_TRUE(b.fabric->arm());
  EXPECT_EQ(poll(&wait, 1, 0), 0) << "it sleeps again";
}

// Its end comes to one descriptor, and the first who looks takes it from there.
TEST_F(RdmaFaults, AllEndpointsOfADeviceHearItsEnd) {
  Side& a = make();
  auto more = a.context->make_endpoint();
  ASSERT_TRUE(more.ok());
  Recorder heard(*more.value());
  cards().remove();
  EXPECT_FALSE(a.fabric->arm());
  pollfd wait{more.value()->event_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 0), 1);
  EXPECT_FALSE(more.value()->arm());
  more.value()->progress();
  EXPECT_TRUE(more.value()->arm());
  EXPECT_EQ(poll(&wait, 1, 0), 0);
}

FakePort port(const char* device, ibv_port_state state, uint8_t width, uint8_t speed, bool ethernet = true) {
  return {device, state, ethernet, width, speed, {}};
}

// On-board network cards are often RDMA devices, too.
TEST_F(RdmaFaults, TheFastestActivePortIsTaken) {
  cards().ports = {port("bnxt0", IBV_PORT_ACTIVE, 1, 32), port("mlx5_0", IBV_PORT_DOWN, 2, 128),
                   port("mlx5_1", IBV_PORT_ACTIVE, 2, 64), port("mlx5_2", IBV_PORT_ACTIVE, 2, 64)};
  const auto device = rdma::Device::open("");
  ASSERT_TRUE(device.ok());
  EXPECT_STREQ(ibv_get_device_name(device.value()->context()->device), "mlx5_1");
  const auto named = rdma::Device::open("bnxt0:1");
  ASSERT_TRUE(named.ok());
  EXPECT_STREQ(ibv_get_device_name(named.value()->context()->device), "bnxt0");
  for (const char* wrong : {"mlx5_0", "bnxt0:2", "mlx", "nosuch"}) {
    const auto none = rdma::Device::open(wrong);
    ASSERT_FALSE(none.ok()) << wrong;
    EXPECT_NE(std::string(none.status().text()).find(wrong), std::string::npos);
    EXPECT_EQ(std::string(none.status().text()).find('\n'), std::string::npos);
  }
}

TEST_F(RdmaFaults, OnEthernetTheAddressIsOneThatRoutersKnow) {
  const auto gid = [](uint8_t last, bool ipv4, uint32_t type) {
    ibv_gid_entry entry{};
    entry.gid.raw[0] = ipv4 ? 0 : 0xfe;
    if (ipv4) entry.gid.raw[10] = entry.gid.raw[11] = 0xff;
    entry.gid.raw[15] = last;
    entry.gid_type = type;
    return entry;
  };
  const auto chosen = [&](std::vector<ibv_gid_entry> gids) {
    cards().ports[0].gids = std::move(gids);
    const auto device = rdma::Device::open("");
    EXPECT_TRUE(device.ok());
    EXPECT_EQ(device.value()->gid().raw[15], device.value()->gid_index());
    return device.value()->gid_index();
  };
  constexpr uint32_t kV1 = IBV_GID_TYPE_ROCE_V1, kV2 = IBV_GID_TYPE_ROCE_V2;
  EXPECT_EQ(chosen({gid(0, false, kV1), gid(1, false, kV2), gid(2, true, kV1), gid(3, true, kV2), gid(4, true, kV2)}),
            3);
  EXPECT_EQ(chosen({gid(0, false, kV1), gid(1, false, kV2)}), 1);
  EXPECT_EQ(chosen({gid(0, false, kV1), gid(1, true, kV1)}), 0);
}

// A route header is for other subnets there, and not all that is between two nodes passes it on.
TEST_F(RdmaFaults, OnInfiniBandTheOwnSubnetNeedsNoRoute) {
  cards().ports = {port("mlx5_0", IBV_PORT_ACTIVE, 2, 64, false)};
  Side &a = make(), &b = make();
  meet(a, b);
  EXPECT_EQ(cards().path.is_global, 0);
  EXPECT_EQ(cards().path.dlid, 7);
}

TEST_F(RdmaFaults, OnEthernetThereIsAlwaysARoute) {
  Side &a = make(), &b = make();
  meet(a, b);
  EXPECT_EQ(cards().path.is_global, 1);
}

}  // namespace
}  // namespace offpath::fabric
