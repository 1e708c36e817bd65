// SPDX-License-Identifier: BSD-3-Clause
#include "model/network.hpp"

#include <algorithm>
#include <limits>

namespace offpath::model {

Network::Network(Events& events, const LinkSpeed& speed, uint32_t nodes)
    : events_(events), speed_(speed), links_(size_t{2} * nodes, Link{speed.burst_bytes, speed.rate_bytes_per_ns}) {}

void Network::send(uint64_t connection, const Route& route, double bytes, Action arrived) {
  const auto nodes = static_cast<uint32_t>(links_.size() / 2);
  begin(connection, {{route.from, nodes + route.to}, route.crossing_efficiency, {}}, bytes, std::move(arrived));
}

void Network::multicast(uint64_t connection, uint32_t from, const std::vector<uint32_t>& to, double bytes,
                        Action arrived) {
  const auto nodes = static_cast<uint32_t>(links_.size() / 2);
  Connection made{{from}, 1, {}};
  for (const uint32_t node : to) made.links.push_back(nodes + node);
  begin(connection, std::move(made), bytes, std::move(arrived));
}

void Network::begin(uint64_t connection, Connection made, double bytes, Action arrived) {
  Connection& c = connections_.try_emplace(connection, std::move(made)).first->second;
  c.messages.push_back({bytes, std::move(arrived)});
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
  const auto is_pair = [](const Connection* c) { return c->links.size() == 2; };  // what goes to all is sent at a pace
  for (const Connection* c : active_) {
    if (!is_pair(c)) continue;
    for (const auto& [here, there] : {std::pair(c->links[0], c->links[1]), std::pair(c->links[1], c->links[0])}) {
      Link& link = links_[here];
      link.forks |= link.peer != kNobody && link.peer != there;
      link.peer = there;
    }
  }
  for (const Connection* c : active_) {
    if (!is_pair(c) || !links_[c->links[0]].forks || !links_[c->links[1]].forks) continue;
    const double rate = speed_.rate_bytes_per_ns * c->crossing_efficiency;
    for (const uint32_t l : c->links) links_[l].rate = std::min(links_[l].rate, rate);
  }
}

// Max-min fairness: the tightest link fixes the rates of its connections, then the next one.
void Network::share() {
  find_rates();
  for (Link& link : links_) {
    link.used = 0;
    link.open = 0;
  }
  for (const Connection* c : active_) {
    for (const uint32_t l : c->links) ++links_[l].open;
  }
  for (std::vector<Connection*> open = active_; !open.empty();) {
    double tightest = std::numeric_limits<double>::max();
    for (Link& link : links_) {
      link.spare = speed_of(link) - link.used;
      if (link.open > 0) tightest = std::min(tightest, link.spare / link.open);
    }
    for (Link& link : links_) link.tight = link.spare <= link.open * tightest * (1 + 1e-9);
    // All connections of the tightest links are taken off together: they have seen the same spare.
    std::erase_if(open, [&](Connection* c) {
      if (std::none_of(c->links.begin(), c->links.end(), [&](uint32_t l) { return links_[l].tight; })) return false;
      c->rate = tightest;
      for (const uint32_t l : c->links) links_[l].used += tightest, --links_[l].open;
      return true;
    });
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
  for (Message& message : over) events_.after(speed_.latency_ns, std::move(message.arrived));
}

}  // namespace offpath::model
