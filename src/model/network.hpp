// SPDX-License-Identifier: BSD-3-Clause
// The wires: every node has one link up and one down, shared by all its connections, behind a switch that does not
// block. Connections share links by max-min fairness; messages of one connection follow each other.
// Where connections of several nodes to several nodes cross, frames for one that is busy hold up those behind them in
// the queue: such links reach a part of their rate, `crossing_efficiency` (first in, first out: Karol, Hluchyj, Morgan,
// 1987). A link is a token bucket: `burst_bytes` saved up while it was idle pass at `peak`, the rest at `rate`. Real
// links have no burst; the emulated ones of the lab do, and it hides short messages. Source: LogGP (Alexandrov et al.,
// SPAA 1995) for latency and bytes; fluid flows as in SimGrid (Velho et al., 2013).
#pragma once

#include "model/events.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

namespace offpath::model {

struct LinkSpeed {
  double rate_bytes_per_ns = 1;
  double peak_bytes_per_ns = 1;
  double burst_bytes = 0;
  double latency_ns = 0;  // from one node to another
};

struct Route {
  uint32_t from, to;               // nodes
  double crossing_efficiency = 1;  // depends on how much of a connection is queued at a time
};

class Network {
 public:
  Network(Events& events, const LinkSpeed& speed, uint32_t nodes);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  // Connections have numbers of their caller's choice, and each one route; `arrived` is called a latency after the last
  // byte is on the way.
  void send(uint64_t connection, const Route& route, double bytes, Action arrived);
  // From one node to all of these, over its link up once and theirs down: at the rate of the slowest of these.
  void multicast(uint64_t connection, uint32_t from, const std::vector<uint32_t>& to, double bytes, Action arrived);

 private:
  struct Message {
    double bytes;
    Action arrived;
  };
  struct Connection {
    std::vector<uint32_t> links;  // up, then down
    double crossing_efficiency;
    std::deque<Message> messages;
    double left_bytes = 0;  // of the first
    double rate = 0;        // bytes per ns
  };
  struct Link {
    double level_bytes;
    double rate;      // that it can keep up now
    double used = 0;  // bytes per ns
    double spare = 0;
    uint32_t open = 0;   // connections whose rate is not found yet
    uint32_t peer = 0;   // of its first active connection: a link
    bool forks = false;  // others lead elsewhere
    bool tight = false;  // fixes the rates of its connections
  };
  void begin(uint64_t connection, Connection made, double bytes, Action arrived);
  void advance();
  void find_rates();
  double speed_of(const Link& link) const { return has_burst(link) ? speed_.peak_bytes_per_ns : link.rate; }
  void share();
  void plan();
  void on_event();
  bool has_burst(const Link& link) const { return link.level_bytes > kEmptyBytes; }

  static constexpr double kEmptyBytes = 1024;
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr double kNothingBytes = 1e-3;

  Events& events_;
  const LinkSpeed speed_;
  std::vector<Link> links_;  // up of all nodes, then down
  std::map<uint64_t, Connection> connections_;
  std::vector<Connection*> active_;
  double since_ns_ = 0;
  uint64_t version_ = 0;
};

}  // namespace offpath::model
