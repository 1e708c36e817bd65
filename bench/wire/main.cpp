// SPDX-License-Identifier: BSD-3-Clause
// offpath-wire --listen ADDRESS:PORT | --connect ADDRESS:PORT [--core N] [--sizes A,B] [--milliseconds N]
// What a wire costs whoever computes beside it: two of these, one on each node, exchange blocks both ways while a
// process on the same core computes. Who connects prints JSON, one row for each size.

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/json.hpp"
#include "../../apps/kit/options.hpp"
#include "link.hpp"
#include "worker.hpp"

namespace {

struct Options : kit::Options {
  Options() : kit::Options("offpath-wire", "What a wire costs whoever computes beside it, as JSON.") {}
  std::string listen = text(listen, "--listen", "IPv4 address and port, 0 for any; says which on stdout");
  std::string connect = text(connect, "--connect", "where the other one listens; this one prints the results");
  int core = number(core, "--core", 0, 0, CPU_SETSIZE - 1, "for the exchange and the computation");
  Numbers sizes = numbers(sizes, "--sizes", {256 << 10, 1 << 20, 4 << 20}, 1, std::int64_t{1} << 30,
                          "bytes each way; the same on both sides");
  int milliseconds =
      number(milliseconds, "--milliseconds", 500, 10, 60000, "how long each of the three measurements takes");

 private:
  std::string check() override {
    return listen.empty() != connect.empty() ? ""
                                             : "one of --listen and --connect is needed (it takes two). See --help";
  }
};

double median(const std::vector<double>& values) { return kit::spread(values).median; }

// Pieces of work in a nanosecond, alone. It takes longer where others have the core all that time: nothing can be told
// from no piece.
double work_speed(wire::Worker& worker, double for_ns) {
  worker.run();
  const double begin = double(kit::now_ns());
  const std::uint64_t before = worker.done();
  while (double(kit::now_ns()) - begin < for_ns || worker.done() == before) kit::sleep_ns(20000000);
  const double speed = static_cast<double>(worker.done() - before) / (double(kit::now_ns()) - begin);
  worker.pause();
  return speed;
}

std::vector<double> exchange(wire::Link& link, std::size_t bytes, std::uint64_t count) {
  std::vector<double> times;
  for (std::uint64_t i = 0; i < count; ++i) {
    const double begin = double(kit::now_ns());
    link.exchange(bytes);
    times.push_back(double(kit::now_ns()) - begin);
  }
  return times;
}

kit::Json measure(wire::Link& link, wire::Worker& worker, std::size_t bytes, const Options& options) {
  const bool leads = !options.connect.empty();
  const double for_ns = options.milliseconds * 1e6;
  link.meet();
  const double alone_speed = work_speed(worker, for_ns / 2);
  link.meet();
  const double once_ns = median(exchange(link, bytes, 5));
  std::uint64_t count = std::max<std::uint64_t>(5, static_cast<std::uint64_t>(for_ns / once_ns));
  if (leads) link.tell(count);
  if (!leads) count = link.hear();
  const double wire_ns = median(exchange(link, bytes, count));
  worker.run();
  link.meet();
  const double begin = double(kit::now_ns()), cpu_begin = double(kit::process_cpu_ns());
  const std::uint64_t before = worker.done();
  const double beside_ns = median(exchange(link, bytes, count));
  const double passed_ns = double(kit::now_ns()) - begin;
  const double speed = static_cast<double>(worker.done() - before) / passed_ns / alone_speed;
  const double process = (double(kit::process_cpu_ns()) - cpu_begin) / passed_ns;
  worker.pause();
  // Work that alone takes as long as the exchange: while that lasts it gets on at `speed`, then at full speed.
  const double total_ns = std::max(beside_ns, beside_ns + wire_ns - speed * beside_ns);
  return {{"bytes", bytes},
          {"wire_ns", wire_ns},
          {"beside_ns", beside_ns},
          {"bits_per_s", 8e9 * static_cast<double>(bytes) / wire_ns},
          {"slowdown", speed},
          {"process_share", process},
          {"interrupt_share", std::max(0.0, 1 - speed - process)},
          {"reachable_efficiency", wire_ns / total_ns}};
}

int run(const Options& options) {
  if (!kit::pin(options.core)) throw std::runtime_error("the core is not there. Give another");
  wire::Worker worker(options.core);
  wire::Link link = options.connect.empty() ? wire::Link::listen(options.listen) : wire::Link::connect(options.connect);
  kit::Json rows = kit::Json::array();
  for (const std::int64_t bytes : options.sizes) {
    rows.push_back(measure(link, worker, static_cast<std::size_t>(bytes), options));
  }
  if (!options.connect.empty()) std::puts(rows.dump(1).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
