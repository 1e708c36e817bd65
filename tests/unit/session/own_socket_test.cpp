// SPDX-License-Identifier: BSD-3-Clause
// Whose socket a service, an agent or a guard removes at its end: its own, wherever that was moved, and nobody else's.
#include "session/link.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace offpath::session {
namespace {

class OwnSocket : public ::testing::Test {
 protected:
  OwnSocket() {
    char pattern[] = "/tmp/offpath-own-socket-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~OwnSocket() override {
    for (const char* name : {"place", "next"}) unlink(path(name).c_str());
    rmdir(folder_.c_str());
  }
  std::string path(const char* name) const { return folder_ + "/" + name; }
  bool is_there(const char* name) const { return access(path(name).c_str(), F_OK) == 0; }
  base::Fd listen_at(const char* name) const {
    base::Fd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, path(name).c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(made.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(made.get(), 1), 0);
    return made;
  }

  std::string folder_;
};

TEST_F(OwnSocket, IsRemovedWhereItWasMoved) {
  const base::Fd next = listen_at("next");
  const OwnSocketName name(next.get(), path("place"));
  ASSERT_EQ(rename(path("next").c_str(), path("place").c_str()), 0);
  name.remove();
  EXPECT_FALSE(is_there("place"));
}

// Whoever was to move it was lost before: the socket at the place is the other one's.
TEST_F(OwnSocket, IsRemovedWhereItWasMadeIfNobodyMovedIt) {
  const base::Fd before = listen_at("place"), next = listen_at("next");
  OwnSocketName(next.get(), path("place")).remove();
  EXPECT_FALSE(is_there("next"));
  EXPECT_TRUE(is_there("place"));
}

// As the guard of a service that was replaced, and is ended afterwards.
TEST_F(OwnSocket, OfAnotherOneInItsPlaceStays) {
  const base::Fd before = listen_at("place");
  const OwnSocketName name(before.get(), path("place"));
  const base::Fd next = listen_at("next");
  ASSERT_EQ(rename(path("next").c_str(), path("place").c_str()), 0);
  name.remove();
  EXPECT_TRUE(is_there("place"));
}

TEST_F(OwnSocket, WithoutADescriptorNothingIsRemoved) {
  const base::Fd before = listen_at("place");
  OwnSocketName(-1, path("place")).remove();
  EXPECT_TRUE(is_there("place"));
}

}  // namespace
}  // namespace offpath::session
