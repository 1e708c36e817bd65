// SPDX-License-Identifier: BSD-3-Clause
// Lines between machines: what was sent comes, and of what somebody on the way has changed, repeated, left out or moved
// nothing does.
#include "device/line.hpp"

#include <gtest/gtest.h>

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <random>

namespace offpath::device {
namespace {

using base::Fd;
using Data = std::vector<uint8_t>;

struct Ends {
  Fd near, far;
  Ends() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    near = Fd(ends[0]), far = Fd(ends[1]);
    const int room = 4 << 20;
    setsockopt(near.get(), SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  }
};

Data pattern(size_t bytes) {
  Data out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + i / 251);
  return out;
}

// All that a line sends.
Data sent(const seal::Session& session, seal::Security security, const std::vector<Data>& parts) {
  Ends pair;
  const Line line(pair.near.get(), session, security);
  for (const Data& part : parts) {
    const iovec pieces[] = {{const_cast<uint8_t*>(part.data()), part.size() / 2},
                            {const_cast<uint8_t*>(part.data()) + part.size() / 2, part.size() - part.size() / 2}};
    EXPECT_TRUE(line.send(pieces).ok());
  }
  pair.near.reset();
  Data out;
  for (uint8_t bytes[65536];;) {
    const ssize_t got = recv(pair.far.get(), bytes, sizeof(bytes), 0);
    if (got <= 0) return out;
    out.insert(out.end(), bytes, bytes + got);
  }
}

// What a line makes of that, as far as it gets.
Data received(seal::Session session, seal::Security security, const Data& bytes, size_t wanted) {
  std::swap(session.in, session.out);
  Ends pair;
  EXPECT_EQ(send(pair.near.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  pair.near.reset();
  const Line line(pair.far.get(), session, security);
  Data out;
  for (uint8_t next[1000]; out.size() < wanted;) {
    const auto got = line.receive_some(next, std::min(sizeof(next), wanted - out.size()));
    if (!got.ok()) break;
    out.insert(out.end(), next, next + got.value());
  }
  return out;
}

class Lines : public ::testing::TestWithParam<seal::Security> {
 protected:
  const seal::Session session_{{1}, {2}, seal::best_of(seal::known_suites())};
};

TEST_P(Lines, BringWhatWasSent) {
  const std::vector<Data> parts{pattern(1), pattern(8193), pattern(200000)};
  const Data bytes = sent(session_, GetParam(), parts);
  const Data all = received(session_, GetParam(), bytes, 1 + 8193 + 200000);
  Data expected;
  for (const Data& part : parts) expected.insert(expected.end(), part.begin(), part.end());
  EXPECT_EQ(all, expected);
  const bool shows = std::search(bytes.begin(), bytes.end(), parts[1].begin(), parts[1].end()) != bytes.end();
  EXPECT_EQ(shows, GetParam() != seal::Security::encrypt);
}

TEST_P(Lines, BringNothingThatWasChanged) {
  std::mt19937 random(5);
  for (const size_t size : {size_t{1}, size_t{100}, size_t{8193}, size_t{200000}}) {
    const Data plain = pattern(size), genuine = sent(session_, GetParam(), {plain});
    for (int round = 0; round < 200; ++round) {
      Data changed = genuine;
      const auto at = changed.begin() + static_cast<std::ptrdiff_t>(random() % changed.size());
      if (round % 4 == 0) *at = static_cast<uint8_t>(*at ^ 1 << random() % 8);
      if (round % 4 == 1) changed.erase(at);
      if (round % 4 == 2) std::reverse(at, changed.end());
      if (round % 4 == 3) changed.insert(at, genuine.begin(), genuine.end());
      if (changed == genuine) continue;
      const Data got = received(session_, GetParam(), changed, size);
      ASSERT_LE(got.size(), plain.size());
      ASSERT_TRUE(std::equal(got.begin(), got.end(), plain.begin())) << size << " round " << round;
      ASSERT_TRUE(got.size() < plain.size() || std::equal(genuine.begin(), genuine.end(), changed.begin())) << round;
    }
  }
}

TEST_P(Lines, AnExecutorIsGivenTheKeys) {
  const auto text = encode_session({session_.in, session_.out, session_.suite}, GetParam());
  const Data plain = pattern(70000), bytes = sent(session_, GetParam(), {plain});
  Ends pair;
  ASSERT_EQ(send(pair.near.get(), bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  Data got(plain.size());
  ASSERT_TRUE(decode_line(pair.far.get(), text).receive(got.data(), got.size(), 5000).ok());
  EXPECT_EQ(got, plain);
}

INSTANTIATE_TEST_SUITE_P(Each, Lines, ::testing::Values(seal::Security::auth, seal::Security::encrypt),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace offpath::device
