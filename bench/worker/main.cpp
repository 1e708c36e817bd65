// SPDX-License-Identifier: BSD-3-Clause
// offpath-worker [--ways near,workers,sockets] [--security auth,full,encrypt] [--sizes A,B] [--milliseconds N]
// What a service's worker moves per second inside this machine, beside what memcpy does with the same blocks on as many
// threads, and how often each byte is copied. As JSON.
#include "fabric/loopback/loopback.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "../../apps/kit/options.hpp"
#include "counted.hpp"
#include "messages.hpp"
#include "side.hpp"

namespace {

using namespace worker_bench;
using kit::Json;
using offpath::seal::Security;

// Where the two ranks are served: by one worker, by two of one service, or by two services with sockets between them.
enum class Way { near, workers, sockets };

constexpr const char* kWays[] = {"near", "workers", "sockets"};
constexpr Security kSecurities[] = {Security::auth, Security::encrypt, Security::user_data_unprotected};
constexpr const char* kSecurityNames[] = {"auth", "encrypt", "user-data-unprotected"};

struct Options : kit::Options {
  Options() : kit::Options("offpath-worker", "What a service's worker moves inside this machine, as JSON.") {}
  std::vector<Way> ways = words(ways, "--ways", {Way::near, Way::workers, Way::sockets}, kWays,
                                "between which two ranks: of one worker, of two, of two services");
  std::vector<int> securities =
      words(securities, "--security", {0}, kSecurityNames, "of sockets, see OFFPATH_FABRIC_SECURITY");
  Numbers sizes = numbers(sizes, "--sizes", {64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20}, 1, std::int64_t{1} << 28,
                          "bytes of a block");
  Numbers message_sizes =
      numbers(message_sizes, "--messages", {0, 4096}, 0, 8192, "bytes of short messages over sockets");
  int depth = number(depth, "--depth", 4, 1, 64, "blocks each way at a time");
  int milliseconds = number(milliseconds, "--milliseconds", 300, 1, 60000, "how long each measurement takes, about");
};

constexpr int kRounds = 5;

double median(const std::vector<double>& values) { return kit::spread(values).median; }

double ns_since(std::int64_t begin) { return static_cast<double>(kit::now_ns() - begin); }

// Bytes in a nanosecond, of all threads together.
double memcpy_speed(const std::vector<Blocks*>& blocks, double for_ns) {
  std::vector<std::thread> threads;
  std::atomic<double> all{0};
  std::atomic<std::size_t> there{0};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    threads.emplace_back([&, i] {
      kit::pin(static_cast<int>(i));
      ++there;
      while (there < blocks.size()) {
      }
      const Blocks& own = *blocks[i];
      const std::int64_t begin = kit::now_ns();
      std::uint64_t count = 0;
      for (; count < own.count() || ns_since(begin) < for_ns; ++count) {
        memcpy(own.receive(count), own.send(count), own.bytes());
      }
      all = all + static_cast<double>(count * own.bytes()) / ns_since(begin);
    });
    if (blocks.size() == 1) threads.back().join();
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  return all;
}

class Pair {
 public:
  Pair(Way way, Security security, std::size_t bytes) : blocks_{Blocks(0, bytes), Blocks(1, bytes)} {
    const std::uint32_t count = way == Way::near ? 1 : 2;
    for (std::uint32_t i = 0; i < count; ++i) {
      sides_.push_back(
          std::make_unique<Side>(i, way == Way::sockets ? make_socket_endpoint(security) : network_.make_endpoint()));
    }
    const std::vector<Side*> both = {sides_.front().get(), sides_.back().get()};
    for (std::uint32_t rank = 0; rank < 2; ++rank) both[rank]->serve(rank, blocks_[rank], both, way != Way::sockets);
    for (std::uint32_t i = 0; i < count; ++i) sides_[i]->begin(static_cast<int>(i));
  }
  // How long it takes.
  double exchange(std::uint64_t operations, std::uint32_t depth) {
    const std::int64_t begin = kit::now_ns();
    const auto all = [&](auto is) { return std::all_of(sides_.begin(), sides_.end(), is); };
    for (const auto& side : sides_) side->go(operations, depth);
    while (!all([](const auto& side) { return side->is_done(); })) {
      if (!all([](const auto& side) { return !side->has_failed(); }))
        throw std::runtime_error("an exchange has failed");
      kit::sleep_ns(200000);
    }
    done_ += operations;
    return ns_since(begin);
  }
  void check() const {
    for (std::uint64_t number = done_ - std::min<std::uint64_t>(done_, blocks_[0].count()); number < done_; ++number) {
      if (!blocks_[0].is_right(number, 1) || !blocks_[1].is_right(number, 0)) {
        throw std::runtime_error("a block has come that is not the one that was sent");
      }
    }
  }
  std::vector<Blocks*> copied_by_threads() {
    return sides_.size() == 1 ? std::vector<Blocks*>{&blocks_[0]} : std::vector<Blocks*>{&blocks_[0], &blocks_[1]};
  }
  std::size_t workers() const { return sides_.size(); }

 private:
  Blocks blocks_[2];
  offpath::fabric::LoopbackNetwork network_{1};
  std::vector<std::unique_ptr<Side>> sides_;
  std::uint64_t done_ = 0;
};

Json measure(Way way, int security, std::size_t bytes, const Options& options) {
  Pair pair(way, kSecurities[security], bytes);
  const auto depth = static_cast<std::uint32_t>(options.depth);
  const double for_ns = options.milliseconds * 1e6;
  const std::uint64_t first = std::max<std::uint64_t>(8, (64 << 20) / bytes);
  pair.exchange(first, depth);
  const double once_ns = pair.exchange(first, depth) / static_cast<double>(first);
  const auto operations = std::max<std::uint64_t>(first, static_cast<std::uint64_t>(for_ns / kRounds / once_ns));
  const auto moved = static_cast<double>(2 * operations * bytes);
  double copies = 0;
  std::vector<double> speeds, memcpy_speeds, ratios;  // in turns: the machine is not always the same
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t before = copied_bytes();
    speeds.push_back(1e9 * moved / pair.exchange(operations, depth));
    copies = static_cast<double>(copied_bytes() - before) / moved;
    pair.check();
    memcpy_speeds.push_back(1e9 * memcpy_speed(pair.copied_by_threads(), for_ns / kRounds / 2));
    ratios.push_back(speeds.back() * copies / memcpy_speeds.back());
  }
  return {{"way", kWays[int(way)]},
          {"security", way == Way::sockets ? Json(kSecurityNames[security]) : Json()},
          {"bytes", bytes},
          {"workers_count", pair.workers()},
          {"moved_bytes_per_s", median(speeds)},
          {"memcpy_bytes_per_s", median(memcpy_speeds)},
          {"copies_per_byte", copies},
          {"memcpy_ratio", median(ratios)}};
}

int run(const Options& options) {
  if (sodium_init() < 0) throw std::runtime_error("libsodium does not start");
  Json rows = Json::array(), messages = Json::array();
  for (const Way way : options.ways) {
    for (const int security : way == Way::sockets ? options.securities : std::vector{0}) {
      for (const std::int64_t bytes : options.sizes) {
        rows.push_back(measure(way, security, static_cast<std::size_t>(bytes), options));
      }
    }
  }
  const bool sockets = std::find(options.ways.begin(), options.ways.end(), Way::sockets) != options.ways.end();
  for (const int security : sockets ? options.securities : std::vector<int>()) {
    for (const std::int64_t bytes : options.message_sizes) {
      const double time_ns =
          ns_per_message(kSecurities[security], static_cast<std::size_t>(bytes), options.milliseconds * 1e6);
      messages.push_back({{"security", kSecurityNames[security]}, {"bytes", bytes}, {"message_ns", time_ns}});
    }
  }
  std::puts(Json{{"rows", rows}, {"messages", messages}}.dump(1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
