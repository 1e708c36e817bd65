// SPDX-License-Identifier: BSD-3-Clause
// Somebody between a program and its device service.
#include "device_service_fixture.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace offpath::service {
namespace {

// Passes on what a program and the service say, which is records after a greeting of a fixed length (device/line.hpp), and does
// to one record of one side what the test wants.
class Middle {
 public:
  enum class Deed { flip, repeat, leave_out, swap };
  struct Plan {
    Deed deed = Deed::flip;
    bool back = false;
    size_t record = SIZE_MAX;
  };

  using Lengths = std::vector<size_t>;
  // `passed`: lengths of the records that each side has said; to be read when this has gone.
  Middle(const device::DeviceEntry& to, const Plan& plan, std::array<Lengths, 2>& passed)
      : to_(to), plan_(plan), passed_(passed) {
    auto listening = DeviceService::listen_on("127.0.0.1:0");
    EXPECT_TRUE(listening.ok());
    sockaddr_in address{};
    socklen_t length = sizeof(address);
    getsockname(listening->get(), reinterpret_cast<sockaddr*>(&address), &length);
    entry.host = "127.0.0.1";
    entry.port = ntohs(address.sin_port);
    thread_ = std::thread([this, listening = std::move(listening.value())] {
      const Fd near(accept(listening.get(), nullptr, nullptr));
      const auto far = device::dial(to_, kTimeoutMs);
      if (!far.ok()) return;
      pollfd ends[2] = {{near.get(), POLLIN, 0}, {far->get(), POLLIN, 0}};
      while (poll(ends, 2, -1) > 0) {
        for (int side = 0; side < 2; ++side) {
          uint8_t bytes[65536];
          const ssize_t got = ends[side].revents == 0 ? -1 : recv(ends[side].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
          if (got == 0 || (got < 0 && ends[side].revents != 0 && errno != EAGAIN)) return;
          if (got < 0) continue;
          const Bytes out = take(static_cast<size_t>(side), Bytes(bytes, bytes + got));
          for (size_t put = 0; put < out.size();) {
            const ssize_t now = send(ends[1 - side].fd, out.data() + put, out.size() - put, MSG_NOSIGNAL);
            if (now <= 0) return;
            put += static_cast<size_t>(now);
          }
        }
      }
    });
  }
  ~Middle() { thread_.join(); }
  device::DeviceEntry entry;

 private:
  using Bytes = std::vector<uint8_t>;

  static void append(Bytes& to, const Bytes& bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }
  Bytes take(size_t side, const Bytes& bytes) {
    const size_t greeting = std::min(greeting_left_[side], bytes.size());
    greeting_left_[side] -= greeting;
    const auto records = bytes.begin() + static_cast<ptrdiff_t>(greeting);
    Bytes out(bytes.begin(), records);
    Bytes& came = came_[side];
    came.insert(came.end(), records, bytes.end());
    while (came.size() >= length_of(came)) {
      const auto end = came.begin() + static_cast<ptrdiff_t>(length_of(came));
      const Bytes record(came.begin(), end);
      came.erase(came.begin(), end);
      append(out, of_record(side, passed_[side].size(), record));
      passed_[side].push_back(record.size());
    }
    return out;
  }
  static size_t length_of(const Bytes& record) {
    constexpr size_t kHead = 4 + seal::kTagBytes;
    uint32_t bytes = 0;
    if (record.size() < kHead) return kHead;
    memcpy(&bytes, record.data(), sizeof(bytes));
    return kHead + bytes + seal::kTagBytes;
  }
  Bytes of_record(size_t side, size_t number, Bytes record) {
    if (plan_.back != (side == 1) || (number != plan_.record && held_.empty())) return record;
    switch (plan_.deed) {
      case Deed::flip:
        record[record.size() / 2] ^= 4;
        return record;
      case Deed::repeat:
        append(record, Bytes(record));
        return record;
      case Deed::leave_out:
        return {};
      case Deed::swap:
        if (held_.empty()) return held_ = record, Bytes();
        append(record, held_);
        return held_.clear(), record;
    }
    return record;
  }

  const device::DeviceEntry to_;
  const Plan plan_;
  std::array<Lengths, 2>& passed_;
  std::array<Bytes, 2> came_;
  std::array<size_t, 2> greeting_left_{seal::kGreetingBytes + seal::kProofBytes,
                                       seal::kChallengeBytes + seal::kVerdictBytes};
  Bytes held_;
  std::thread thread_;
};

TEST_F(DeviceServiceTest, WhoIsBetweenProgramAndDeviceChangesNothing) {
  start_remote(8);
  const std::vector<uint8_t> data(100000, 7);
  std::array<Middle::Lengths, 2> all;
  // Whether all went well; what was read was sent.
  const auto exchange = [&](const Middle::Plan& plan) {
    std::array<Middle::Lengths, 2> passed;
    bool well = false;
    {
      const device::DeviceEntry real = entry_;
      Middle middle(real, plan, passed);
      entry_ = middle.entry;
      auto opened = open_remote(key_);
      entry_ = real;
      if (opened.ok()) {
        device::Queue queue;
        std::vector<uint8_t> read(data.size());
        const auto place = opened.value()->allocate(data.size());
        well = place.ok() && opened.value()->write(place.value(), data.data(), data.size(), queue).ok() &&
               opened.value()->read(read.data(), place.value(), read.size(), queue).ok() &&
               opened.value()->wait(queue).ok();
        EXPECT_TRUE(!well || read == data) << "record " << plan.record << (plan.back ? " back" : "");
        opened.value().reset();
      }
    }
    all = well ? passed : all;
    return well;
  };
  ASSERT_TRUE(exchange({}));
  using Deed = Middle::Deed;
  for (const bool back : {false, true}) {
    const Middle::Lengths lengths = all[back ? 1 : 0];
    ASSERT_GE(lengths.size(), 3U);
    for (size_t record = 0; record < lengths.size(); ++record) {
      EXPECT_FALSE(exchange({Deed::flip, back, record})) << "nobody noticed, " << record << (back ? " back" : "");
      if (record + 1 == lengths.size()) break;  // nobody reads what comes behind it
      EXPECT_FALSE(exchange({Deed::repeat, back, record})) << "nobody noticed, " << record << (back ? " back" : "");
    }
    // One that is full has another behind it.
    const auto full = std::max_element(lengths.begin(), lengths.end()) - lengths.begin();
    for (const Deed deed : {Deed::leave_out, Deed::swap}) {
      EXPECT_FALSE(exchange({deed, back, static_cast<size_t>(full)})) << "nobody noticed" << (back ? ", back" : "");
    }
  }
}

}  // namespace
}  // namespace offpath::service
