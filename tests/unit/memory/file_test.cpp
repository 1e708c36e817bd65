// SPDX-License-Identifier: BSD-3-Clause
// Files as places: what was written is read, and what the file system refuses is said.
#include "memory/file.hpp"

#include "memory/completions.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <random>

namespace offpath::memory {
namespace {

struct FileTest : ::testing::Test {
  std::shared_ptr<OpenFile> file = std::make_shared<OpenFile>(base::Fd(memfd_create("file", MFD_CLOEXEC)));
  std::shared_ptr<FileError> error = std::make_shared<FileError>(0);
  std::promise<void> woken;
  Completions completions{[this] { woken.set_value(); }};
  FileThreads threads{2};
  std::unique_ptr<Port> port = make_file(file, &threads, error);

  // Another descriptor of what is then `file`, as another program has one.
  base::Fd open_twice() {
    char path[] = "/tmp/offpath-file-test-XXXXXX";
    file = std::make_shared<OpenFile>(base::Fd(mkstemp(path)));
    base::Fd other(open(path, O_RDWR | O_CLOEXEC));
    unlink(path);
    return other;
  }

  // How the access ends that is made with a ticket.
  template <typename Access>
  base::Status end_of(Access access) {
    woken = {};
    const Outcome outcome = access(Ticket{&completions, 5});
    if (!outcome.is_later()) return outcome.status();
    woken.get_future().wait();
    const auto ended = completions.take();
    EXPECT_EQ(ended.size(), 1U);
    EXPECT_EQ(ended.front().first, 5U);
    return ended.front().second;
  }
};

TEST_F(FileTest, AnswersLater) {
  EXPECT_FALSE(port->prompt());
  EXPECT_EQ(port->view(0, 1), nullptr);
  const std::string text = "some bytes";
  EXPECT_TRUE(end_of([&](Ticket t) { return port->write(1000, text.data(), text.size(), t); }).ok());
  std::string read(text.size(), ' ');
  EXPECT_TRUE(end_of([&](Ticket t) { return port->read(read.data(), 1000, read.size(), t); }).ok());
  EXPECT_EQ(read, text);
  // And at once where nobody is to be told.
  read.assign(text.size(), ' ');
  EXPECT_TRUE(port->read(read.data(), 1000, read.size()).ok());
  EXPECT_EQ(read, text);
}

TEST_F(FileTest, RangesInOrder) {
  const std::vector<Range> ranges = {{50, 3}, {10, 4}, {100, 1}};
  EXPECT_TRUE(end_of([&](Ticket t) { return port->scatter(ranges, "abcdefgh", t); }).ok());
  char bytes[101] = {};
  ASSERT_EQ(pread(file->get(), bytes, 101, 0), 101);
  EXPECT_EQ(std::string(bytes + 50, 3), "abc");
  EXPECT_EQ(std::string(bytes + 10, 4), "defg");
  EXPECT_EQ(bytes[100], 'h');
  std::string read(8, ' ');
  EXPECT_TRUE(end_of([&](Ticket t) { return port->gather(read.data(), ranges, t); }).ok());
  EXPECT_EQ(read, "abcdefgh");
}

TEST_F(FileTest, AWriteWaitsForLocksOfOthers) {
  const base::Fd other = open_twice();
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_start = 10;
  lock.l_len = 10;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLKW, &lock), 0);
  port = make_file(file, &threads, error, true);
  woken = {};
  EXPECT_TRUE(port->write(15, "x", 1, Ticket{&completions, 1}).is_later());
  EXPECT_TRUE(port->write(20, "y", 1).ok()) << "beside the lock";
  char byte = 0;
  EXPECT_EQ(pread(other.get(), &byte, 1, 15), 1);
  EXPECT_EQ(byte, 0) << "not yet";
  lock.l_type = F_UNLCK;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLK, &lock), 0);
  woken.get_future().wait();
  EXPECT_EQ(pread(other.get(), &byte, 1, 15), 1);
  EXPECT_EQ(byte, 'x');
  lock.l_type = F_WRLCK;
  EXPECT_EQ(fcntl(other.get(), F_OFD_SETLK, &lock), 0) << "it was given back";
}

// A long write has many pieces, and none but the first waits.
TEST_F(FileTest, WhoKeepsALockIsWaitedForOnce) {
  const base::Fd other = open_twice();
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLK, &lock), 0);
  port = make_file(file, &threads, error, true);
  EXPECT_TRUE(file->waits_for_locks);
  EXPECT_TRUE(port->write(15, "x", 1).ok());
  EXPECT_FALSE(file->waits_for_locks);
  EXPECT_TRUE(port->write(16, "y", 1).ok());
  EXPECT_FALSE(file->waits_for_locks);
  lock.l_type = F_UNLCK;
  ASSERT_EQ(fcntl(other.get(), F_OFD_SETLK, &lock), 0);
  EXPECT_TRUE(port->write(17, "z", 1).ok());
  EXPECT_TRUE(file->waits_for_locks);
}

TEST_F(FileTest, AFileThatEndsTooSoonIsAnError) {
  ASSERT_EQ(ftruncate(file->get(), 10), 0);
  char bytes[20];
  EXPECT_EQ(end_of([&](Ticket t) { return port->read(bytes, 0, 20, t); }).code(), OFFPATH_ERR_FILE);
  EXPECT_EQ(error->load(), 0);
}

TEST_F(FileTest, WhatIsRefusedIsSaidOnce) {
  const auto read_only = std::make_shared<OpenFile>(base::Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  port = make_file(read_only, &threads, error);
  EXPECT_EQ(end_of([&](Ticket t) { return port->write(0, "x", 1, t); }).code(), OFFPATH_ERR_FILE);
  EXPECT_EQ(error->load(), EBADF);
  EXPECT_EQ(end_of([&](Ticket t) { return port->write(INT64_MAX, "xy", 2, t); }).code(), OFFPATH_ERR_FILE);
  EXPECT_EQ(end_of([&](Ticket t) { return port->write(UINT64_MAX - 1, "xy", 2, t); }).code(), OFFPATH_ERR_FILE);
  EXPECT_EQ(error->load(), EBADF) << "the first one";
}

TEST_F(FileTest, AllThatWasAskedForIsDoneBeforeTheEnd) {
  std::atomic<int> done{0};
  {
    FileThreads own(3);
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(own.run([&] { ++done; }));
  }
  EXPECT_EQ(done.load(), 1000);
}

}  // namespace
}  // namespace offpath::memory
