// SPDX-License-Identifier: BSD-3-Clause
// Connections by the thousand, more than the kernel keeps, and bytes that leave one by one.
#include "../own_network.hpp"
#include "pair.hpp"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <filesystem>
#include <random>

namespace offpath::fabric::tcp {
namespace {

// While it is there, each call that sends takes so many bytes at most, and then somebody has a look at what came.
struct ShortWrites {
  ShortWrites(size_t limit, std::function<void()> look_at) : bytes(limit), look(std::move(look_at)) { here = this; }
  ~ShortWrites() { here = nullptr; }
  ShortWrites(const ShortWrites&) = delete;
  ShortWrites& operator=(const ShortWrites&) = delete;
  const size_t bytes;
  const std::function<void()> look;
  size_t calls = 0;
  static inline ShortWrites* here = nullptr;
};

ssize_t send_some(int socket, const msghdr* message, int flags) {
  using Call = ssize_t (*)(int, const msghdr*, int);
  static const auto real = reinterpret_cast<Call>(dlsym(RTLD_NEXT, "sendmsg"));
  ShortWrites* const short_writes = std::exchange(ShortWrites::here, nullptr);
  if (short_writes == nullptr) return real(socket, message, flags);
  iovec part = message->msg_iov[0];
  part.iov_len = std::min(part.iov_len, short_writes->bytes);
  msghdr some = *message;
  some.msg_iov = &part;
  some.msg_iovlen = 1;
  const ssize_t sent = real(socket, &some, flags);
  ++short_writes->calls;
  short_writes->look();
  ShortWrites::here = short_writes;
  return sent;
}

}  // namespace
}  // namespace offpath::fabric::tcp

extern "C" ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  return offpath::fabric::tcp::send_some(socket, message, flags);
}

namespace offpath::fabric::tcp {
namespace {

Place place_of(Side& side) { return EndpointAddress::decode(side->address())->places.front(); }

bool both_until(Side& a, Side& b, const std::function<bool()>& done) {
  return run_until(done, [&] { a->progress(), b->progress(); });
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin, {}));
}

// It leaves nothing in the kernel that later connections would stumble over.
void reset(base::Fd& socket) {
  const linger now{1, 0};
  setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  socket.reset();
}

TEST(TcpFlood, EveryByteLeavesAndComesByItself) {
  for (const Security security : kSecurities) {
    for (const size_t bytes : {1, 7}) {
      Side a(quick(security)), b(quick(security));
      const Exchange exchange;
      const Peer to_b = a->connect(b->address()).value();
      const Peer to_a = b->connect(a->address()).value();
      ASSERT_TRUE(both_until(a, b, [&] { return !a->is_connecting() && !b->is_connecting(); }));
      size_t calls = 0;
      for (Side* const from : {&a, &b}) {
        Side& to = from == &a ? b : a;
        const ShortWrites each(bytes, [&] { to->progress(); });
        exchange.say(*from->endpoint, from == &a ? to_b : to_a);
        ASSERT_TRUE(
            both_until(a, b, [&] { return Exchange::all_heard(*to.hears) && Exchange::all_sent(*from->hears); }));
        calls += each.calls;
      }
      Exchange::expect_genuine(*a.hears, true);
      Exchange::expect_genuine(*b.hears, true);
      EXPECT_GT(calls, 2 * 3 * kPrefixBytes / bytes);
      EXPECT_EQ(a->counters().wrong_frames + b->counters().wrong_frames, 0U);
    }
  }
}

// Ten thousand strangers, and two thousand services of the job among them: all of those get in, and what it costs has a
// bound.
TEST(TcpFlood, TenThousandAreRefusedAndThoseOfTheJobLetIn) {
  static_cast<void>(offpath::testing::enter_own_network());
  Options options = quick();
  options.max_strangers = 16;
  Side b(options);
  const Place door = place_of(b);
  const Words of_another_job = Initiator(seal::secret_for(seal::Use::fabric, {9}), {}).greet();
  const size_t before = open_descriptors();
  size_t most = 0;
  std::deque<base::Fd> strangers;
  constexpr size_t kStrangers = 10000;
  for (size_t i = 0; i < kStrangers; ++i) {
    strangers.push_back(begin_connect(door, {}));
    ASSERT_TRUE(strangers.back().valid());
    if (i % 3 != 0) static_cast<void>(send_words(strangers.back().get(), of_another_job));
    if (strangers.size() > 40) reset(strangers.front()), strangers.pop_front();
    if (i % 5 == 0) {
      Side a(quick());
      a->send(a->connect(b->address()).value(), Data{1}, {}, 0);
      b.hears->messages.clear();
      ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; })) << i;
      most = std::max(most, open_descriptors());
    } else {
      b->progress();
    }
  }
  for (base::Fd& stranger : strangers) reset(stranger);
  ASSERT_TRUE(run_until([&] { return b->counters().strangers >= kStrangers - 64; }, [&] { b->progress(); }));
  EXPECT_EQ(b->counters().links, kStrangers / 5);
  EXPECT_LT(most, before + strangers.size() + options.max_strangers + 30) << "those of one service, and who is waiting";
  strangers.clear();
  ASSERT_TRUE(run_until([&] { return open_descriptors() <= before + 2; }, [&] { b->progress(); }));
}

// The kernel has as many as it keeps, all strangers: who comes then has to try again, and gets in when they are looked
// at.
TEST(TcpFlood, AFullBacklogOnlyDelays) {
  Options options = quick();
  options.sockets.backlog = 4;
  options.max_strangers = 4;
  Side b(options);
  std::vector<base::Fd> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(begin_connect(place_of(b), {}));
  Options patient = quick();
  patient.tick_ms = 500;  // the kernel tries again after a second
  Side a(patient);
  const Peer to_b = a->connect(b->address()).value();
  a->send(to_b, Data{1}, {}, 0);
  for (int i = 0; i < 100; ++i) a->progress();
  EXPECT_EQ(a->counters().links, 0U);
  ASSERT_TRUE(both_until(a, b, [&] { return b.hears->messages.size() == 1; }));
  EXPECT_TRUE(a.hears->lost.empty());
}

// They have proven nothing, and neither go nor say anything: their time is up after some ticks, without any other
// guest.
TEST(TcpFlood, HalfAHandshakeHasABound) {
  Side b(quick());
  const Words greeting = Initiator(quick().secret, {0, Security::auth, {1}, {}}).greet();
  std::vector<base::Fd> strangers;
  const size_t before = open_descriptors();
  for (size_t i = 0; i < 20; ++i) {
    strangers.push_back(begin_connect(place_of(b), {}));
    static_cast<void>(send_words(strangers.back().get(), Bytes(greeting).first(i * greeting.size() / 20)));
  }
  ASSERT_TRUE(run_until([&] { return b->counters().strangers == strangers.size(); }, [&] { b->progress(); }));
  EXPECT_EQ(open_descriptors(), before + strangers.size()) << "only their own ends are left";
  EXPECT_TRUE(run_until([&] { return !b->is_connecting(); }, [&] { b->progress(); })) << "no tick is left";
}

}  // namespace
}  // namespace offpath::fabric::tcp
