// SPDX-License-Identifier: BSD-3-Clause
// offpath-delay: links with latency for `offpath lab`, where the kernel has no queueing discipline for it. Each link is
// two TAP devices of this network namespace; a frame that enters one of them leaves the other one later. They go when
// this process ends. Prints "ready" when the devices are there.
#include "../../apps/kit/clocks.hpp"
#include "../../apps/kit/options.hpp"

#include <linux/if.h>
#include <linux/if_tun.h>

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr size_t kMaxFrameBytes = 65535 + 18;
constexpr size_t kMaxWaitingFrames = 10000;  // a direction; what comes then is lost, as in a switch

struct Frame {
  int64_t due_ns;
  std::vector<uint8_t> bytes;
};

struct Direction {
  int from, to;
  std::deque<Frame> waiting;  // by time: the delay is the same for all
};

// -1 and errno if it cannot be made.
int make_tap(const std::string& name) {
  const int device = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  strncpy(request.ifr_name, name.c_str(), sizeof(request.ifr_name) - 1);
  return device < 0 || ioctl(device, TUNSETIFF, &request) != 0 ? -1 : device;
}

bool take_in(Direction& direction, int64_t delay_ns) {
  uint8_t frame[kMaxFrameBytes];
  const ssize_t bytes = read(direction.from, frame, sizeof(frame));
  if (bytes <= 0) return false;
  if (direction.waiting.size() < kMaxWaitingFrames) {
    direction.waiting.push_back({kit::now_ns() + delay_ns, {frame, frame + bytes}});
  }
  return true;
}

// Returns when the next one is due, or `never`.
int64_t let_out(Direction& direction, int64_t never) {
  while (!direction.waiting.empty()) {
    const Frame& frame = direction.waiting.front();
    if (frame.due_ns > kit::now_ns()) return frame.due_ns;
    [[maybe_unused]] const ssize_t written = write(direction.to, frame.bytes.data(), frame.bytes.size());
    direction.waiting.pop_front();
  }
  return never;
}

[[noreturn]] void serve(std::vector<Direction> directions, int64_t delay_ns) {
  std::vector<pollfd> waits;
  for (const Direction& direction : directions) waits.push_back({direction.from, POLLIN, 0});
  while (true) {
    int64_t next = INT64_MAX;
    for (Direction& direction : directions) next = std::min(next, let_out(direction, INT64_MAX));
    const int64_t left = std::max<int64_t>(0, next - kit::now_ns());
    const timespec timeout{left / 1000000000, left % 1000000000};
    if (ppoll(waits.data(), waits.size(), next == INT64_MAX ? nullptr : &timeout, nullptr) <= 0) continue;
    for (size_t i = 0; i < directions.size(); ++i) {
      while ((waits[i].revents & POLLIN) != 0 && take_in(directions[i], delay_ns)) {
      }
    }
  }
}

struct Options : kit::Options {
  Options()
      : kit::Options("offpath-delay",
                     "Links that take their time, for `offpath lab`. Runs until it is killed; needs root.") {
    require("--delay-us");
  }
  double delay_us = real(delay_us, "--delay-us", 0, 0, 1e6, "how long a frame is under way");
  std::vector<std::string> links = others(links, "links", "PORT=UPLINK: names of the two ends of a link");
};

int run(const Options& options) {
  std::vector<Direction> directions;
  for (const std::string& link : options.links) {
    const size_t middle = link.find('=');
    const int left = make_tap(link.substr(0, middle));
    const int right = middle == std::string::npos ? -1 : make_tap(link.substr(middle + 1));
    if (left < 0 || right < 0) {
      return options.complain("cannot make the link " + link + ": " + strerror(errno) +
                              ". It needs root and /dev/net/tun");
    }
    directions.push_back({left, right, {}});
    directions.push_back({right, left, {}});
  }
  // Where either is refused, frames are a little later.
  const sched_param first{1};
  sched_setscheduler(0, SCHED_FIFO, &first);
  prctl(PR_SET_TIMERSLACK, 1);
  puts("ready");
  fflush(stdout);
  serve(std::move(directions), static_cast<int64_t>(options.delay_us * 1e3));
}

}  // namespace

int main(int argc, char** argv) { return kit::run(argc, argv, run); }
