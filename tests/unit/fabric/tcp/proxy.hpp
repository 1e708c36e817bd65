// SPDX-License-Identifier: BSD-3-Clause
// Somebody on the path between two endpoints: passes bytes on, and does to one place of them what the test wants.
#pragma once

#include "fabric/tcp/sockets.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <deque>
#include <functional>

namespace offpath::fabric::tcp {

class Proxy {
 public:
  using Data = std::vector<uint8_t>;
  enum class Deed {
    nothing,
    cut,        // all connections, and no new ones
    flip,       // one bit
    repeat,     // what came last, once more
    leave_out,  // a byte
    turn        // what comes from there on: the last byte first
  };
  struct Plan {
    Deed deed = Deed::nothing;
    bool back = false;  // in what the one who was connected to says
    size_t at = 0;      // byte of that direction
    int bit = 0;
  };

  Proxy(const std::vector<uint8_t>& address, Plan plan) : plan_(plan), wanted_(*EndpointAddress::decode(address)) {
    place_ = wanted_.places.front();
    auto listening = listen_at(place_, {});
    EXPECT_TRUE(listening.ok()) << listening.status().text();
    if (listening.ok()) listening_ = std::move(listening.value());
  }
  // The one to be given to who connects.
  std::vector<uint8_t> address() const {
    EndpointAddress out = wanted_;
    out.places = {place_};
    return out.encode();
  }
  // What is done from now on; bytes count from here.
  void plan_from_here(Plan plan) {
    plan.at += passed(plan.back);
    plan_ = plan;
  }
  // What stands breaks; the next connections pass. `far_too`: else who was connected to sees nothing of it.
  void break_all(bool far_too = true) {
    for (Pair& pair : pairs_) {
      if (!far_too) kept_.push_back(std::move(pair.far));
      pair.near.reset(), pair.far.reset();
    }
    pairs_.clear();
  }
  bool done() const { return done_; }
  size_t passed(bool back) const { return passed_[back ? 1 : 0]; }
  const std::vector<Data>& recorded() const { return recorded_; }  // what the first side said, by connection

  void step() {
    if (listening_.valid()) {
      base::Fd guest = accept_from(listening_.get(), {});
      if (guest.valid()) {
        pairs_.push_back({std::move(guest), begin_connect(wanted_.places.front(), {}), {}, {}, recorded_.size()});
        recorded_.emplace_back();
      }
    }
    for (Pair& pair : pairs_) {
      pass(pair, false);
      pass(pair, true);
    }
    std::erase_if(pairs_, [](const Pair& pair) { return !pair.near.valid(); });
  }

 private:
  struct Pair {
    base::Fd near, far;
    Data to_far, to_near;
    size_t number;
  };

  void pass(Pair& pair, bool back) {
    if (!pair.near.valid()) return;
    uint8_t bytes[16384];
    Data& waiting = back ? pair.to_near : pair.to_far;
    const ssize_t got = recv(back ? pair.far.get() : pair.near.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN)) {
      flush(pair, back);
      pair.near.reset(), pair.far.reset();
      return;
    }
    if (got > 0) take(pair, back, Data(bytes, bytes + got), waiting);
    if (pair.near.valid()) flush(pair, back);
  }

  void take(Pair& pair, bool back, Data data, Data& waiting) {
    if (!back) recorded_[pair.number].insert(recorded_[pair.number].end(), data.begin(), data.end());
    const size_t before = std::exchange(passed_[back ? 1 : 0], passed(back) + data.size());
    const bool here = plan_.back == back && plan_.at >= before && plan_.at < before + data.size();
    if (here && plan_.deed != Deed::nothing && !std::exchange(done_, true)) {
      const auto at = data.begin() + static_cast<std::ptrdiff_t>(plan_.at - before);
      switch (plan_.deed) {
        case Deed::nothing:
          break;
        case Deed::flip:
          *at = static_cast<uint8_t>(*at ^ 1 << plan_.bit);
          break;
        case Deed::repeat: {
          const Data again(data.begin(), at + 1);
          data.insert(at + 1, again.begin(), again.end());
          break;
        }
        case Deed::leave_out:
          data.erase(at);
          break;
        case Deed::turn:
          if (std::equal(at, data.end(), data.rbegin())) done_ = false;
          std::reverse(at, data.end());
          break;
        case Deed::cut:
          waiting.insert(waiting.end(), data.begin(), at);
          flush(pair, back);
          for (Pair& other : pairs_) other.near.reset(), other.far.reset();
          listening_.reset();
          return;
      }
    }
    waiting.insert(waiting.end(), data.begin(), data.end());
  }

  static void flush(Pair& pair, bool back) {
    Data& waiting = back ? pair.to_near : pair.to_far;
    if (waiting.empty()) return;
    const ssize_t sent =
        ::send(back ? pair.near.get() : pair.far.get(), waiting.data(), waiting.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) waiting.erase(waiting.begin(), waiting.begin() + sent);
  }

  Plan plan_;
  EndpointAddress wanted_;
  Place place_;
  base::Fd listening_;
  std::deque<Pair> pairs_;
  std::vector<base::Fd> kept_;
  std::vector<Data> recorded_;
  std::array<size_t, 2> passed_{};
  bool done_ = false;
};

}  // namespace offpath::fabric::tcp
