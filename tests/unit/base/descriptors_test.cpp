// SPDX-License-Identifier: BSD-3-Clause
// base/: descriptors, those that are passed to another process, and shared memory that refuses what it must.
#include "base/fd.hpp"
#include "base/memfd.hpp"
#include "base/passing.hpp"
#include "base/process.hpp"
#include "in_child.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <utility>

namespace offpath::base {
namespace {

TEST(Fd, ClosesOnce) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  Fd end(fds[0]);
  Fd moved(std::move(end));
  EXPECT_FALSE(end.valid());
  moved.reset();
  EXPECT_EQ(fcntl(fds[0], F_GETFD), -1);
  EXPECT_EQ(Fd(fds[1]).release(), fds[1]);
  EXPECT_EQ(fcntl(fds[1], F_GETFD), 0);
  close(fds[1]);
}

TEST(Descriptors, AreClosedFromOneOn) {
  in_child([] {
    const int kept = fcntl(1, F_DUPFD, 200), closed = fcntl(1, F_DUPFD, kept + 1), far = fcntl(1, F_DUPFD, 300);
    close_from(closed);
    EXPECT_NE(fcntl(kept, F_GETFD), -1);
    EXPECT_EQ(fcntl(closed, F_GETFD), -1);
    EXPECT_EQ(fcntl(far, F_GETFD), -1);
  });
}

constexpr size_t kBytes = 1 << 16;

TEST(Memfd, IsSharedWithWhoeverAdoptsIt) {
  auto mine = Memfd::create("test", kBytes);
  ASSERT_TRUE(mine.ok()) << mine.status().text();
  auto other = Memfd::adopt(Fd(dup(mine->fd())), kBytes);
  ASSERT_TRUE(other.ok()) << other.status().text();
  mine->data()[kBytes - 1] = 9;
  EXPECT_EQ(other->data()[kBytes - 1], 9);
  EXPECT_NE(ftruncate(mine->fd(), 10), 0) << "must be sealed against shrinking";
}

TEST(Memfd, MovesItsMapping) {
  auto first = Memfd::create("test", kBytes);
  auto second = Memfd::create("test", kBytes);
  ASSERT_TRUE(first.ok() && second.ok());
  uint8_t* data = first->data();
  second.value() = std::move(first.value());
  EXPECT_EQ(second->data(), data);
  EXPECT_EQ(first->data(), nullptr);
  Memfd third(std::move(second.value()));
  third.data()[0] = 1;
  EXPECT_EQ(third.bytes(), kBytes);
}

TEST(Memfd, RefusesWhatCouldFaultLater) {
  auto mine = Memfd::create("test", kBytes);
  ASSERT_TRUE(mine.ok());
  for (const size_t wrong : {size_t{0}, kBytes - 1, kBytes + 1, SIZE_MAX}) {
    const auto other = Memfd::adopt(Fd(dup(mine->fd())), wrong);
    EXPECT_EQ(other.status().code(), OFFPATH_ERR_ARGUMENT) << wrong;
  }
  Fd unsealed(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), kBytes), 0);
  EXPECT_EQ(Memfd::adopt(std::move(unsealed), kBytes).status().code(), OFFPATH_ERR_ARGUMENT);
  Fd file(open("/tmp", O_TMPFILE | O_RDWR, 0600));
  if (file.valid()) {
    ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
    EXPECT_EQ(Memfd::adopt(std::move(file), kBytes).status().code(), OFFPATH_ERR_ARGUMENT);
  }
  EXPECT_EQ(Memfd::adopt(Fd(), kBytes).status().code(), OFFPATH_ERR_ARGUMENT);
  EXPECT_EQ(Memfd::adopt(Fd(open("/dev/null", O_RDWR)), 0).status().code(), OFFPATH_ERR_ARGUMENT);
}

TEST(Memfd, SmallFileSizeLimitIsAnErrorNotASignal) {
  in_child([] {
    const rlimit limit{4096, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    const auto memory = Memfd::create("test", kBytes);
    EXPECT_EQ(memory.status().code(), OFFPATH_ERR_NO_MEMORY);
    EXPECT_NE(strstr(memory.status().text(), "ulimit -f"), nullptr) << memory.status().text();
  });
}

TEST(Memfd, NoDescriptorsLeftIsAnError) {
  in_child([] {
    const rlimit limit{3, 3};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(Memfd::create("test", kBytes).status().code(), OFFPATH_ERR_NO_MEMORY);
  });
}

// ---- Descriptors that come along -------------------------------------------------------------------------------

size_t descriptors_of(int pipe_end) {
  struct stat info {
  }, other{};
  size_t count = 0;
  for (int fd = 0; fd < 64; ++fd) {
    count += fstat(pipe_end, &info) == 0 && fstat(fd, &other) == 0 && info.st_ino == other.st_ino;
  }
  return count;
}

class Passing : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2], pipes[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
    from_ = Fd(ends[0]);
    to_ = Fd(ends[1]);
    reading_ = Fd(pipes[0]);
    writing_ = Fd(pipes[1]);
  }
  void send(std::span<const int> descriptors) {
    char word[] = "word";
    const iovec parts[] = {{word, 2}, {word + 2, 2}};
    ASSERT_EQ(send_passing(from_.get(), parts, descriptors), 4);
  }

  Fd from_, to_, reading_, writing_;
  char got_[8] = {};
};

TEST_F(Passing, DescriptorsKeepTheirOrder) {
  const int sent[] = {reading_.get(), writing_.get()};
  send(sent);
  std::array<Fd, 3> passed;
  const Received received = receive_passing(to_.get(), got_, sizeof(got_), passed);
  EXPECT_EQ(received.bytes, 4);
  EXPECT_EQ(received.flags & (MSG_TRUNC | MSG_CTRUNC), 0);
  EXPECT_STREQ(got_, "word");
  ASSERT_TRUE(passed[0].valid() && passed[1].valid());
  EXPECT_FALSE(passed[2].valid());
  EXPECT_EQ(fcntl(passed[0].get(), F_GETFD), FD_CLOEXEC);
  ASSERT_EQ(write(passed[1].get(), "x", 1), 1);
  EXPECT_EQ(read(passed[0].get(), got_, 1), 1);
}

TEST_F(Passing, WhatIsTooMuchIsCutAndClosed) {
#ifdef OFFPATH_TEST_EMULATED
  GTEST_SKIP() << "the emulator hands over all that was sent; runs on the machine itself";
#endif
  const int sent[] = {reading_.get(), reading_.get(), reading_.get()};
  send(sent);
  Fd passed;
  const size_t before = descriptors_of(reading_.get());
  const Received received = receive_passing(to_.get(), got_, 2, {&passed, 1});
  EXPECT_EQ(received.bytes, 2);
  EXPECT_EQ(received.flags & (MSG_TRUNC | MSG_CTRUNC), MSG_TRUNC | MSG_CTRUNC);
  EXPECT_TRUE(passed.valid());
  EXPECT_EQ(descriptors_of(reading_.get()), before + 1);
}

TEST_F(Passing, NoneIsNothingSpecial) {
  send({});
  Fd passed;
  EXPECT_EQ(receive_passing(to_.get(), got_, sizeof(got_), {&passed, 1}).bytes, 4);
  EXPECT_FALSE(passed.valid());
  EXPECT_EQ(receive_passing(to_.get(), got_, sizeof(got_), {}, MSG_DONTWAIT).bytes, -1);
  from_.reset();
  EXPECT_EQ(receive_passing(to_.get(), got_, sizeof(got_), {}).bytes, 0);
  const iovec part{got_, 1};
  EXPECT_EQ(send_passing(to_.get(), {&part, 1}, {}), -1) << "and no signal";
}

}  // namespace
}  // namespace offpath::base
