// SPDX-License-Identifier: BSD-3-Clause
// Who is let in, heard and let go, while others are silent. No guest is late here unless it says so.
#include "session/lobby.hpp"
#include "session/link.hpp"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace offpath::session {
namespace {

constexpr uint64_t kNeverNs = uint64_t{1} << 62;

struct Greeter {
  bool greeted = false;
  bool has_greeted() const { return greeted; }
};
using Guests = Lobby<Greeter>;

class Lobbies : public ::testing::Test {
 protected:
  Lobbies() {
    char pattern[] = "/tmp/offpath-lobby-XXXXXX";
    path_ = std::string(mkdtemp(pattern)) + "/socket";
    listening_ = std::move(listen_at(path_).value());
  }
  ~Lobbies() override {
    unlink(path_.c_str());
    rmdir(path_.substr(0, path_.rfind('/')).c_str());
  }
  base::Fd come() const { return std::move(connect_to(path_).value()); }
  static bool is_held(const base::Fd& guest) {
    char byte;
    return recv(guest.get(), &byte, 1, MSG_DONTWAIT) < 0;
  }
  static bool has_something_to_do(const Guests& lobby) {
    pollfd wait{lobby.event_fd(), POLLIN, 0};
    return poll(&wait, 1, 0) > 0;
  }
  static bool hear(Guests::Guest& guest) {
    char byte;
    guest.who.greeted |= recv(guest.socket.get(), &byte, 1, MSG_DONTWAIT) == 1;
    return false;
  }

  std::string path_;
  base::Fd listening_;
};

TEST_F(Lobbies, SilentGuestsDelayNobody) {
  Guests lobby({kNeverNs});
  lobby.open(listening_.get());
  std::vector<base::Fd> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(come());
  const base::Fd honest = come();
  ASSERT_TRUE(send_message(honest.get(), "h", 1).ok());
  for (bool is_heard = false; !is_heard;) {
    ASSERT_TRUE(has_something_to_do(lobby)) << "it waits for a silent one";
    lobby.look([&](Guests::Guest& guest) {
      hear(guest);
      return is_heard = guest.who.greeted;
    });
  }
  for (const base::Fd& each : silent) EXPECT_TRUE(is_held(each));
  EXPECT_FALSE(has_something_to_do(lobby));
}

// Also where a child has the same socket.
TEST_F(Lobbies, WhoIsTakenIsWatchedNoMore) {
  Guests lobby({kNeverNs});
  lobby.open(listening_.get());
  const base::Fd guest = come();
  base::Fd of_a_child;
  EXPECT_TRUE(lobby.look([&](Guests::Guest& each) {
    of_a_child = base::Fd(dup(each.socket.get()));
    return lobby.take(each).valid();
  }));
  EXPECT_FALSE(lobby.any());
  ASSERT_TRUE(send_message(guest.get(), "h", 1).ok());
  EXPECT_FALSE(has_something_to_do(lobby));
}

TEST_F(Lobbies, WhoIsLateIsLetGo) {
  Guests lobby({0});
  lobby.open(listening_.get());
  const base::Fd silent = come();
  EXPECT_TRUE(lobby.look(hear));
  EXPECT_FALSE(is_held(silent));
  EXPECT_FALSE(lobby.any());
}

// Of too many.
TEST_F(Lobbies, WhoHasGreetedStaysAndASilentOneGoes) {
  Guests lobby({kNeverNs, 2});
  lobby.open(listening_.get());
  const base::Fd first = come();
  EXPECT_TRUE(lobby.look(hear));
  ASSERT_TRUE(send_message(first.get(), "h", 1).ok());
  const base::Fd second = come(), third = come();
  EXPECT_TRUE(lobby.look(hear));
  EXPECT_TRUE(lobby.look(hear));
  EXPECT_TRUE(is_held(first));
  EXPECT_FALSE(is_held(second));
  EXPECT_TRUE(is_held(third));
  EXPECT_FALSE(lobby.look(hear));
}

}  // namespace
}  // namespace offpath::session
