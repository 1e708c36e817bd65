// SPDX-License-Identifier: BSD-3-Clause
// Fabrics by name, and addresses that are not of the own fabric: short, damaged, hostile.
#include "fabric/factory.hpp"

#include "fabric/loopback/loopback.hpp"
#include "fabric/named.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

namespace offpath::fabric {
namespace {

using Data = std::vector<uint8_t>;

class LoopbackContext : public Context {
 public:
  base::Result<std::unique_ptr<Fabric>> make_endpoint() override { return network_.make_endpoint(); }

 private:
  LoopbackNetwork network_{1};
};

Data bytes(std::string_view text) { return {text.begin(), text.end()}; }

Data joined(Data a, const Data& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class NamedTest : public ::testing::Test {
 protected:
  NamedTest() { EXPECT_TRUE(a.open().ok() && b.open().ok()); }
  LoopbackContext context;
  Named a{"loopback", context}, b{"loopback", context};
};

TEST_F(NamedTest, AddressBeginsWithTheNameAndConnects) {
  const Data address = b.address();
  EXPECT_EQ(Data(address.begin(), address.begin() + 9), bytes("loopback:"));
  const auto peer = a.connect(address);
  ASSERT_TRUE(peer.ok()) << peer.status().text();
  EXPECT_EQ(a.find(address), std::optional(peer.value()));
}

TEST_F(NamedTest, ForeignFabricIsNamed) {
  const auto peer = a.connect(joined(bytes("tcp:"), {1, 0, 0, 0}));
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.status().code(), OFFPATH_ERR_PEER_LOST);
  const std::string text = peer.status().text();
  EXPECT_NE(text.find("'tcp'"), std::string::npos) << text;
  EXPECT_NE(text.find("'loopback'"), std::string::npos) << text;
  EXPECT_NE(text.find("OFFPATH_FABRIC"), std::string::npos) << text;
}

TEST_F(NamedTest, HostileAddressesAreRefused) {
  const Data good = b.address();
  ASSERT_TRUE(a.connect(good).ok());
  std::vector<Data> hostile;
  for (size_t length = 0; length < good.size(); ++length) hostile.emplace_back(good.begin(), good.begin() + length);
  for (const char* text : {":", "loopback", "loopbac:\1\0\0\0", "loopback2:\1\0\0\0", "LOOPBACK:\1\0\0\0",
                           " loopback:", "%s%n:", "a\nb:", "tcp:"}) {
    hostile.push_back(bytes(text));
  }
  hostile.push_back(joined(Data(4000, 'x'), bytes(":")));
  hostile.push_back(joined(bytes("loopback:"), Data(4000, 0xff)));
  std::mt19937 random(5);
  for (int i = 0; i < 1000; ++i) {
    Data& noise = hostile.emplace_back(random() % 40);
    for (uint8_t& byte : noise) byte = static_cast<uint8_t>(random());
  }
  for (const Data& address : hostile) {
    const auto peer = a.connect(address);
    ASSERT_FALSE(peer.ok()) << address.size();
    for (const char* c = peer.status().text(); *c != '\0'; ++c) ASSERT_TRUE(*c >= ' ' && *c <= '~') << *c;
    EXPECT_EQ(a.find(address), std::nullopt);
  }
}

TEST_F(NamedTest, IsNotThereBeforeItIsNeeded) {
  Named closed("loopback", context);
  EXPECT_TRUE(closed.address().empty());
  EXPECT_EQ(closed.event_fd(), -1);
  EXPECT_FALSE(closed.progress());
  EXPECT_EQ(closed.find(a.address()), std::nullopt);
  const auto peer = closed.connect(a.address());
  ASSERT_FALSE(peer.ok());
  EXPECT_EQ(peer.status().code(), OFFPATH_ERR_PEER_LOST);
}

class FactoryTest : public ::testing::TestWithParam<const char*> {
 protected:
  FactoryTest() {
    for (const char* name : {"OFFPATH_FABRIC_SECURITY", "OFFPATH_UCX_NET_DEVICES"}) unsetenv(name);
  }
};

TEST_P(FactoryTest, MakesWhatIsNamed) {
  const auto made = make(GetParam(), {});
  ASSERT_TRUE(made.ok()) << made.status().text();
  EXPECT_STREQ(made->name, *GetParam() == '\0' ? "tcp" : GetParam());
  Named fabric(made->name, *made->context);
  ASSERT_TRUE(fabric.open().ok());
  const Data own = fabric.address();
  EXPECT_TRUE(fabric.connect(own).ok());
  // UCX itself would die of a damaged one, and no other fabric is to look for somebody who is not there.
  for (size_t cut = 4; cut < own.size(); ++cut) EXPECT_FALSE(fabric.connect(Bytes(own).first(cut)).ok()) << cut;
  for (size_t i = 0; i < own.size(); ++i) {
    Data damaged = own;
    damaged[i] = static_cast<uint8_t>(damaged[i] ^ 0x11);
    EXPECT_FALSE(fabric.connect(damaged).ok()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FactoryTest, ::testing::Values("", "tcp", "ucx"),
                         [](const auto& test) { return std::string(*test.param == '\0' ? "usual" : test.param); });

TEST_F(FactoryTest, WantsRdmaWhereAPortOfItIsActive) {
  const std::string folder = ::testing::TempDir() + "offpath_rdma_" + std::to_string(getpid());
  const std::string port = folder + "/mlx5_0/ports/1";
  EXPECT_FALSE(wants_rdma(folder));
  std::filesystem::create_directories(port);
  EXPECT_FALSE(wants_rdma(folder));
  std::ofstream(port + "/state") << "1: DOWN\n";
  EXPECT_FALSE(wants_rdma(folder));
  std::ofstream(port + "/state") << "4: ACTIVE\n";
  EXPECT_TRUE(wants_rdma(folder));
  setenv("OFFPATH_FABRIC_SECURITY", "auth", 1);
  EXPECT_FALSE(wants_rdma(folder)) << "a card cannot give it";
  std::filesystem::remove_all(folder);
}

// Sockets of this process at which anybody may begin a connection.
size_t listening_sockets() {
  std::vector<std::string> own;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one that this list is read by
    own.push_back(std::filesystem::read_symlink(entry.path(), gone).string());
  }
  size_t found = 0;
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream words(line);
      std::array<std::string, 10> word;  // the fourth is the state, 0A means that it listens; the tenth is the inode
      for (auto& each : word) words >> each;
      if (word[3] == "0A") found += static_cast<size_t>(std::count(own.begin(), own.end(), "socket:[" + word[9] + "]"));
    }
  }
  return found;
}

// What a stranger sends to the port of UCX can end the process (UCX 1.13). Without TCP it has none.
TEST_F(FactoryTest, UcxWithoutTcpOpensNoPort) {
  const auto opened = [](const std::string& transports) {
    setenv("OFFPATH_UCX_TLS", transports.c_str(), 1);
    const auto made = make("ucx", {});
    unsetenv("OFFPATH_UCX_TLS");
    unsetenv("UCX_TLS");
    EXPECT_TRUE(made.ok()) << made.status().text();
    if (!made.ok()) return size_t{0};
    Named fabric("ucx", *made.value().context);
    EXPECT_TRUE(fabric.open().ok());
    return listening_sockets();
  };
  EXPECT_EQ(opened(transports_for_services("", false)), 0u);
  EXPECT_GE(opened("tcp"), 1u) << "nothing was looked for";
}

// On an RDMA network no port is open that strangers reach: UCX's TCP is there if it is named only.
TEST_F(FactoryTest, UcxHasTcpWhereItIsWantedOnly) {
  for (const auto& [wanted, with_tcp, without_tcp] :
       std::vector<std::array<std::string, 3>>{{"", "^sm", "^tcp,sm"},
                                               {"all", "^sm", "^tcp,sm"},
                                               {"tcp,self", "tcp,self", "self"},
                                               {"rc,tcp", "rc,tcp", "rc"},
                                               {"tcp", "tcp", "^tcp,sm"},
                                               {"^ud", "^ud,sm", "^ud,tcp,sm"}}) {
    EXPECT_EQ(transports_for_services(wanted, true), with_tcp) << wanted;
    EXPECT_EQ(transports_for_services(wanted, false), without_tcp) << wanted;
  }
}

// One line that names the variable, and no fabric that is weaker than what was asked for.
TEST_F(FactoryTest, WhatCannotBeIsSaid) {
  const auto refused = [](const char* fabric, const char* variable, const char* value) {
    setenv(variable, value, 1);
    const auto made = make(fabric, {});
    unsetenv(variable);
    const std::string text = made.status().text();
    EXPECT_FALSE(made.ok());
    EXPECT_NE(text.find(std::string(variable)), std::string::npos) << text;
    EXPECT_NE(text.find(std::string("'") + value + "'"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  for (const char* value : {"none", "Auth", "auth ", "encrypted", "1"})
    refused("tcp", "OFFPATH_FABRIC_SECURITY", value);
  for (const char* value : {"auth", "encrypt", "none"}) refused("ucx", "OFFPATH_FABRIC_SECURITY", value);
  for (const char* value : {"auth", "encrypt", "none"}) refused("rdma", "OFFPATH_FABRIC_SECURITY", value);
  for (const char* value : {"nosuch0", "mlx5_0:1"}) refused("tcp", "OFFPATH_UCX_NET_DEVICES", value);
}

TEST_F(FactoryTest, AnUnknownNameIsOneClearLine) {
  for (const char* name : {"tpc", "UCX", "ucx ", "ucxx", "uc"}) {
    const auto made = make(name, {});
    ASSERT_FALSE(made.ok()) << name;
    const std::string text = made.status().text();
    EXPECT_NE(text.find("'" + std::string(name) + "'"), std::string::npos) << text;
    EXPECT_NE(text.find("OFFPATH_FABRIC"), std::string::npos) << text;
    EXPECT_NE(text.find("ucx"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace offpath::fabric
