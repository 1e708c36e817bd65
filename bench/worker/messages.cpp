// SPDX-License-Identifier: BSD-3-Clause
#include "messages.hpp"

#include "fabric/tcp/endpoint.hpp"

#include <atomic>
#include <stdexcept>
#include <thread>

#include "../../apps/kit/clocks.hpp"

namespace worker_bench {

using namespace offpath;
using seal::Security;

namespace {

constexpr std::uint64_t kUnderWay = 4096;
constexpr std::uint64_t kConfirmEvery = 256;

// Counts what comes, and confirms some of it.
class Counter : public fabric::Receiver {
 public:
  explicit Counter(fabric::Fabric& fabric) : fabric_(fabric) { fabric.set_receiver(this); }
  void on_message(fabric::Bytes, fabric::Bytes) override { ++came; }
  void on_announced(fabric::Bytes, std::size_t, fabric::Announced handle) override { fabric_.drop(handle); }
  void on_fetched(std::uint64_t, bool) override {}
  void on_sent(std::uint64_t, bool) override {}
  void on_peer_lost(fabric::Peer) override { lost = true; }
  std::atomic<std::uint64_t> came{0};
  std::atomic<bool> lost{false};

 private:
  fabric::Fabric& fabric_;
};

}  // namespace

std::unique_ptr<fabric::Fabric> make_socket_endpoint(Security security) {
  fabric::tcp::Options options;
  options.secret = seal::secret_for(seal::Use::fabric, {1});
  options.security = security;
  options.devices = "lo";
  auto endpoint = fabric::tcp::make_context(std::move(options))->make_endpoint();
  if (!endpoint.ok()) throw std::runtime_error(endpoint.status().text());
  return std::move(endpoint.value());
}

double ns_per_message(Security security, std::size_t bytes, double for_ns) {
  const auto from = make_socket_endpoint(security), to = make_socket_endpoint(security);
  Counter sends(*from), takes(*to);
  std::atomic<bool> done{false};
  std::thread taker([&] {
    kit::pin(1);
    const fabric::Peer back = to->connect(from->address()).value();
    const std::uint8_t word[1] = {0};
    for (std::uint64_t confirmed = 0; !done;) {
      to->progress();
      for (; takes.came - confirmed >= kConfirmEvery; confirmed += kConfirmEvery) to->send(back, word, {}, 0);
    }
  });
  const fabric::Peer peer = from->connect(to->address()).value();
  const std::uint8_t header[64] = {};
  const std::vector<std::uint8_t> payload(bytes, 1);
  std::uint64_t sent = 0, counted = 0;
  auto begin = kit::now_ns();
  double passed_ns = 0;
  // The first part is to get going; connecting has a bound, after which they are lost.
  for (bool warm = false; (passed_ns < for_ns || takes.came == counted) && !sends.lost && !takes.lost;) {
    for (int i = 0; i < 64 && sent - kConfirmEvery * sends.came < kUnderWay; ++i)
      from->send(peer, header, payload, ++sent);
    from->progress();
    passed_ns = static_cast<double>(kit::now_ns() - begin);
    if (takes.came == 0) begin = kit::now_ns(), passed_ns = 0;  // they are still connecting
    if (!warm && passed_ns >= for_ns / 4) warm = true, begin = kit::now_ns(), counted = takes.came, passed_ns = 0;
  }
  const auto came = static_cast<double>(takes.came - counted);
  done = true;
  taker.join();
  if (sends.lost || takes.lost) throw std::runtime_error("the connection broke");
  return passed_ns / came;
}

}  // namespace worker_bench
