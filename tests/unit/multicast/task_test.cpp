// SPDX-License-Identifier: BSD-3-Clause
// Whole tasks over a simulated network that loses, doubles, delays and replays datagrams by a seed, and moves what is said
// reliably in any order of pairs. Bytes are real: each node ends with those that the others sent.
#include "multicast/task.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>

namespace offpath::multicast {
namespace {

constexpr uint32_t kChunk = 8;

struct Net {
  double loss = 0;              // of one datagram on the way to one node
  double shared = 0;            // of one datagram on the way to all
  double doubled = 0;           // comes again, later
  double stale = 0;             // beside each datagram one of another task
  double hasty = 0;             // per event: somebody thinks that it is quiet
  bool works = true;            // false: all agreed on the ring
  uint32_t stops = UINT32_MAX;  // that node does nothing any more,
  uint32_t after = 0;           // from that event on
};

struct Datagram {
  uint64_t task = 0;
  uint32_t chunk = 0;
  std::vector<uint8_t> bytes;
};

class Cluster {
 public:
  Cluster(const std::vector<uint64_t>& parts, const Net& net, uint64_t seed, const Task::Config& config = {})
      : shape_(*Shape::make(parts, kChunk)), net_(net), random_(seed) {
    uint64_t total = 0;
    for (const uint64_t bytes : parts) {
      base_.push_back(total);
      total += bytes;
    }
    for (uint64_t i = 0; i < total; ++i) truth_.push_back(static_cast<uint8_t>(random_()));
    for (uint32_t node = 0; node < shape_.nodes(); ++node) {
      tasks_.emplace_back(shape_, node, config);
      memory_.emplace_back(total, uint8_t{0});
      std::copy_n(truth_.begin() + at(base_[node]), parts[node], memory_.back().begin() + at(base_[node]));
    }
    here_.resize(shape_.nodes());
  }

  // Until nothing happens any more, though everybody thinks that it is quiet.
  void run() {
    std::vector<uint32_t> starts;
    for (uint32_t node = 0; node < shape_.nodes(); ++node) starts.push_back(node);
    std::shuffle(starts.begin(), starts.end(), random_);
    for (const uint32_t node : starts) {
      say(node, [this](Task& task) { task.go(net_.works); });
    }
    for (bool more = true; more;) {
      while (step()) {
        if (chance(net_.hasty)) say(draw(shape_.nodes()), [](Task& task) { task.quiet(); });
      }
      for (uint32_t node = 0; node < shape_.nodes(); ++node) say(node, [](Task& task) { task.quiet(); });
      more = anything();
    }
  }

  void expect_all_right() const {
    for (uint32_t node = 0; node < shape_.nodes(); ++node) {
      EXPECT_TRUE(tasks_[node].done()) << node;
      EXPECT_EQ(memory_[node], truth_) << node;
    }
  }
  // What is said to be there is right, at whoever it may be.
  void expect_nothing_wrong() const {
    for (uint32_t node = 0; node < shape_.nodes(); ++node) {
      for (uint32_t chunk = 0; chunk < shape_.chunks(); ++chunk) {
        const bool is_here = tasks_[node].arrivals().look(chunk) == Arrival::known;
        EXPECT_TRUE(!is_here || is_right(node, chunk)) << node;
      }
    }
  }
  const Task& task(uint32_t node) const { return tasks_[node]; }
  uint64_t multicast() const { return multicast_; }
  uint64_t repaired() const {
    uint64_t sum = 0;
    for (const Task& task : tasks_) sum += task.repaired();
    return sum;
  }
  // Members that multicast at the same time, at most.
  uint64_t concurrent() const { return concurrent_; }

 private:
  using Words = std::vector<std::function<void(Task&)>>;

  static std::ptrdiff_t at(uint64_t offset) { return static_cast<std::ptrdiff_t>(offset); }
  uint32_t draw(uint64_t below) { return static_cast<uint32_t>(random_() % below); }
  bool chance(double part) { return part > 0 && std::uniform_real_distribution<>(0, 1)(random_) < part; }
  bool stopped(uint32_t node) const { return node == net_.stops && events_ >= net_.after; }
  uint64_t place(uint32_t chunk) const {
    const uint32_t owner = shape_.owner(chunk);
    return base_[owner] + shape_.offset(owner, chunk);
  }
  uint64_t length(const Chunks& run) const { return shape_.bytes(shape_.owner(run.first), run); }
  bool is_right(uint32_t node, uint32_t chunk) const {
    const uint64_t from = place(chunk);
    return std::equal(truth_.begin() + at(from), truth_.begin() + at(from + length({chunk, 1})),
                      memory_[node].begin() + at(from));
  }
  bool anything() const {
    const auto empty = [](const auto& queue) { return queue.empty(); };
    return !sending_.empty() || !std::all_of(here_.begin(), here_.end(), empty) || !words_.empty();
  }

  // One event, of any kind that there is.
  bool step() {
    if (!anything()) return false;
    ++events_;
    const uint32_t kind = draw(4);
    if (kind == 0 && !words_.empty()) return deliver_word();
    if (kind == 1 && !sending_.empty()) return send_one();
    const uint32_t node = draw(shape_.nodes());
    if (!here_[node].empty()) deliver_datagram(node);
    return true;
  }

  bool deliver_word() {
    auto link = std::next(words_.begin(), draw(words_.size()));
    const auto [from, to] = link->first;
    const auto word = link->second.front();
    link->second.erase(link->second.begin());
    if (link->second.empty()) words_.erase(link);
    if (!stopped(from)) say(to, word);  // what a stopped one had said may be lost, too
    return true;
  }

  bool send_one() {
    const auto sender = std::next(sending_.begin(), draw(sending_.size()));
    concurrent_ = std::max<uint64_t>(concurrent_, sending_.size());
    const uint32_t node = sender->first;
    const uint32_t chunk = sender->second.first++;
    const bool last = --sender->second.count == 0;
    if (last) sending_.erase(sender);
    if (stopped(node)) return true;
    ++multicast_;
    const auto from = memory_[node].begin() + at(place(chunk));
    const Datagram datagram{1, chunk, {from, from + at(length({chunk, 1}))}};
    const bool lost = chance(net_.shared);
    for (uint32_t other = 0; other < shape_.nodes() && !lost; ++other) {
      if (chance(net_.stale)) here_[other].push_back({0, draw(shape_.chunks()), {1, 2, 3}});
      if (!chance(net_.loss)) here_[other].push_back(datagram);  // the own ones come back, too
      if (chance(net_.doubled)) here_[other].push_back(datagram);
    }
    if (last) say(node, [](Task& task) { task.sent(); });
    return true;
  }

  void deliver_datagram(uint32_t node) {
    std::vector<Datagram>& queue = here_[node];
    const size_t index = draw(std::min<size_t>(queue.size(), 8));  // overtakes some
    const Datagram datagram = queue[index];
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
    if (stopped(node) || datagram.task != 1 || tasks_[node].look(datagram.chunk) != Arrival::fresh) return;
    std::copy(datagram.bytes.begin(), datagram.bytes.end(), memory_[node].begin() + at(place(datagram.chunk)));
    say(node, [&](Task& task) { task.note(datagram.chunk); });
  }

  // Tells a node something, and does what it then wants.
  void say(uint32_t node, const std::function<void(Task&)>& what) {
    if (stopped(node)) return;
    what(tasks_[node]);
    while (const auto act = tasks_[node].next()) perform(node, *act);
  }

  void perform(uint32_t node, const Act& act) {
    const uint32_t part = act.part;
    const Chunks run = act.run;
    const uint32_t to = act.to;
    const auto tell = [&](std::function<void(Task&)> word) { words_[{node, to}].push_back(std::move(word)); };
    switch (act.kind) {
      case Act::Kind::send:
        sending_[node] = run;
        return;
      case Act::Kind::token:
        return tell([node](Task& task) { EXPECT_TRUE(task.token(node)); });
      case Act::Kind::need:
        return tell([node, part](Task& task) { EXPECT_TRUE(task.need(node, part)); });
      case Act::Kind::ready:
        return tell([node, part](Task& task) { EXPECT_TRUE(task.ready(node, part)); });
      case Act::Kind::fin:
        return tell([node](Task& task) { EXPECT_TRUE(task.fin(node)); });
      case Act::Kind::pull:
        return tell([this, node, to, part, run](Task& task) {
          EXPECT_TRUE(task.may_pull(node, part, run));
          words_[{to, node}].push_back([this, node, to, run](Task& fetcher) {
            const auto from = memory_[to].begin() + at(place(run.first));
            std::copy(from, from + at(length(run)), memory_[node].begin() + at(place(run.first)));
            EXPECT_TRUE(fetcher.fetched(run));
          });
        });
    }
  }

  Shape shape_;
  Net net_;
  std::mt19937_64 random_;
  std::vector<uint64_t> base_;
  std::vector<uint8_t> truth_;
  std::vector<Task> tasks_;
  std::vector<std::vector<uint8_t>> memory_;
  std::vector<std::vector<Datagram>> here_;               // by node
  std::map<std::pair<uint32_t, uint32_t>, Words> words_;  // by from and to, in order
  std::map<uint32_t, Chunks> sending_;                    // by node: what it has not sent
  uint64_t events_ = 0, multicast_ = 0, concurrent_ = 0;
};

std::vector<uint64_t> equal_parts(uint32_t nodes, uint64_t bytes) { return std::vector<uint64_t>(nodes, bytes); }

TEST(WholeTask, WithoutLossEachByteIsSentOnceAndNothingIsFetched) {
  for (const uint32_t chains : {1u, 2u, 3u}) {
    Cluster cluster(equal_parts(6, 83), {}, chains, {.chains = chains});
    cluster.run();
    cluster.expect_all_right();
    EXPECT_EQ(cluster.multicast(), 6u * 11);
    EXPECT_LE(cluster.concurrent(), chains);
  }
}

// Datagrams overtake each other, so the last chunk may come before others, and a few are fetched too early.
TEST(WholeTask, LossOvertakingDoublesAndStaleOnesAreRepaired) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> parts;
    const uint64_t nodes = 2 + random() % 8;
    while (parts.size() < nodes) parts.push_back(random() % 3 == 0 ? 0 : random() % 400);
    const double loss = static_cast<double>(random() % 60) / 100;
    const Net net{.loss = loss, .shared = loss / 4, .doubled = .1, .stale = .2, .hasty = seed % 3 == 0 ? .05 : 0};
    Task::Config config;
    config.chains = 1 + static_cast<uint32_t>(random() % 3);
    config.fetch = {.run = 1 + static_cast<uint32_t>(random() % 9), .pulls = 1 + static_cast<uint32_t>(random() % 4)};
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(parts, net, seed, config);
    cluster.run();
    cluster.expect_all_right();
    if (HasFailure()) return;
  }
}

TEST(WholeTask, IsTheRingWhereAllIsLostOrNothingIsMulticast) {
  for (const bool works : {true, false}) {
    Cluster cluster(equal_parts(5, 100), {.loss = 1, .works = works}, 7);
    cluster.run();
    cluster.expect_all_right();
    EXPECT_EQ(cluster.repaired(), 5u * 4 * 13);
    EXPECT_EQ(cluster.multicast(), works ? 5u * 13 : 0u);
  }
}

TEST(WholeTask, BroadcastAndNothingAtAll) {
  for (const uint32_t root : {0u, 3u}) {
    std::vector<uint64_t> parts(5, 0);
    parts[root] = 1000;
    Cluster cluster(parts, {.loss = .3}, root);
    cluster.run();
    cluster.expect_all_right();
    EXPECT_EQ(cluster.multicast(), 125u);
  }
  Cluster nothing(equal_parts(4, 0), {}, 1);
  nothing.run();
  nothing.expect_all_right();
}

// Who has heard all needs nobody: only the node that serves the stopped one stays, until the engine gives that one up.
TEST(WholeTask, AReceiverThatStopsStopsNobodyWhoHasAll) {
  std::vector<uint64_t> parts(5, 0);
  parts[0] = 1000;
  Cluster cluster(parts, {.stops = 2, .after = 0}, 3);
  cluster.run();
  cluster.expect_nothing_wrong();
  for (const uint32_t node : {0u, 1u, 3u, 4u}) {
    EXPECT_TRUE(cluster.task(node).complete()) << node;
    EXPECT_EQ(cluster.task(node).done(), node != 1) << node;
  }
  EXPECT_FALSE(cluster.task(2).complete());
}

// Whenever a node stops, everything comes to rest, and what is taken for received is right.
TEST(WholeTask, ANodeThatStopsAtAnyMomentLeavesNothingWrong) {
  for (uint32_t after = 0; after < 600; after += 7) {
    const Net net{.loss = .2, .doubled = .1, .stale = .1, .stops = after % 4, .after = after};
    SCOPED_TRACE("after " + std::to_string(after));
    Cluster cluster(equal_parts(4, 60), net, after);
    cluster.run();
    cluster.expect_nothing_wrong();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace offpath::multicast
