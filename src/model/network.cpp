// SPDX-License-Identifier: BSD-3-Clause
#include "model/network.hpp"

#include <algorithm>
#include <limits>

namespace offpath::model {

Network::Network(Events& events, const LinkSpeed& speed, uint32_t nodes)
    : events_(events), speed_(speed), links_(size_t{2} * nodes, Link{speed.burst_bytes, speed.rate_bytes_per_ns}) {}

void Network::send(uint64_t connection, const Route& route, double bytes, Action arrived, Action sent) {
  const auto nodes = static_cast<uint32_t>(links_.size() / 2);
  const Connection made{route.from, nodes + route.to, route.crossing_efficiency, {}};
  Connection& c = connections_.try_emplace(connection, made).first->second;
  c.messages.push_back({bytes, std::move(arrived), std::move(sent)});
  if (c.messages.size() > 1) return;
  advance();
  c.left_bytes = bytes;
  active_.push_back(&c);
  share();
  plan();
}

void Network::advance() {
  const double passed_ns = events_.now_ns() - since_ns_;
  since_ns_ = events_.now_ns();
  for (Connection* c : active_) c->left_bytes -= c->rate * passed_ns;
  for (Link& link : links_) {
    link.level_bytes = std::clamp(link.level_bytes + (link.rate - link.used) * passed_ns, 0.0, speed_.burst_bytes);
  }
}

void Network::find_rates() {
  for (Link& link : links_) link.rate = speed_.rate_bytes_per_ns, link.peer = kNobody, link.forks = false;
  for (const Connection* c : active_) {
    for (const auto& [here, there] : {std::pair(c->up, c->down), std::pair(c->down, c->up)}) {
      Link& link = links_[here];
      link.forks |= link.peer != kNobody && link.peer != there;
      link.peer = there;
    }
  }
  for (const Connection* c : active_) {
    if (!links_[c->up].forks || !links_[c->down].forks) continue;
    const double rate = speed_.rate_bytes_per_ns * c->crossing_efficiency;
    for (const uint32_t l : {c->up, c->down}) links_[l].rate = std::min(links_[l].rate, rate);
  }
}

// Max-min fairness: the tightest link fixes the rates of its connections, then the next one.
void Network::share() {
  find_rates();
  for (Link& link : links_) {
    link.spare = speed_of(link);
    link.used = 0;
    link.open = 0;
  }
  for (Connection* c : active_) {
    c->fixed = false;
    ++links_[c->up].open;
    ++links_[c->down].open;
  }
  for (size_t left = active_.size(); left > 0;) {
    double tightest = std::numeric_limits<double>::max();
    for (const Link& link : links_) {
      if (link.open > 0) tightest = std::min(tightest, link.spare / link.open);
    }
    const auto is_tight = [&](const Link& link) { return link.spare <= link.open * tightest * (1 + 1e-9); };
    for (Connection* c : active_) {
      if (c->fixed) continue;
      const bool limited = is_tight(links_[c->up]) || is_tight(links_[c->down]);
      if (!limited) continue;
      c->fixed = true;
      c->rate = tightest;
    }
    // Taken off only now: all connections of the tightest links have been seen with the same spare.
    left = 0;
    for (Link& link : links_) link.open = 0, link.used = 0;
    for (Connection* c : active_) {
      for (const uint32_t l : {c->up, c->down}) {
        if (c->fixed) {
          links_[l].used += c->rate;
        } else {
          ++links_[l].open;
        }
      }
      left += c->fixed ? 0 : 1;
    }
    for (Link& link : links_) link.spare = speed_of(link) - link.used;
  }
}

void Network::plan() {
  const uint64_t version = ++version_;
  double next_ns = std::numeric_limits<double>::max();
  for (const Connection* c : active_) next_ns = std::min(next_ns, std::max(0.0, c->left_bytes) / c->rate);
  for (const Link& link : links_) {
    const double drain = link.used - link.rate;
    if (drain > 0 && has_burst(link)) next_ns = std::min(next_ns, (link.level_bytes - kEmptyBytes / 2) / drain);
  }
  if (active_.empty()) return;
  events_.after(next_ns, [this, version] {
    if (version == version_) on_event();
  });
}

void Network::on_event() {
  advance();
  std::vector<Message> over;
  bool changed = false;
  for (size_t i = 0; i < active_.size();) {
    Connection& c = *active_[i];
    while (!c.messages.empty() && c.left_bytes <= kNothingBytes) {
      over.push_back(std::move(c.messages.front()));
      c.messages.pop_front();
      if (!c.messages.empty()) c.left_bytes += c.messages.front().bytes;
    }
    if (!c.messages.empty()) {
      ++i;
      continue;
    }
    c.rate = 0;
    active_[i] = active_.back();
    active_.pop_back();
    changed = true;
  }
  for (const Link& link : links_) changed |= !has_burst(link) && link.used > link.rate * (1 + 1e-9);
  if (changed) share();
  plan();
  for (Message& message : over) {
    if (message.sent) message.sent();
    events_.after(speed_.latency_ns, std::move(message.arrived));
  }
}

}  // namespace offpath::model
