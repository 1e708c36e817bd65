// SPDX-License-Identifier: BSD-3-Clause
// Multicast groups of an endpoint: over UDP, on one of its devices, under its secret.
#include "fabric/multicast/group.hpp"

#include "fabric/tcp/endpoint.hpp"

#include <cstdio>

namespace offpath::fabric::tcp {
namespace {

// In bits per second, as the system says it; 0: it does not.
uint64_t device_rate(const std::string& device) {
  const std::string path = "/sys/class/net/" + device + "/speed";
  FILE* const file = fopen(path.c_str(), "re");
  if (file == nullptr) return 0;
  long megabits = 0;
  const bool known = fscanf(file, "%ld", &megabits) == 1 && megabits > 0;
  fclose(file);
  return known ? static_cast<uint64_t>(megabits) * 1'000'000 : 0;
}

}  // namespace

base::Result<std::shared_ptr<Group>> Endpoint::join(const GroupSpec& spec) {
  multicast::GroupOptions options;
  options.secret = options_.secret;
  options.team = spec.team;
  options.own = spec.own;
  options.members = spec.members;
  options.encrypts = options_.security == Security::encrypt;
  options.chunk_bytes = spec.chunk_bytes;
  options.socket.device = multicast_device(options_.devices);
  options.link_rate = device_rate(options.socket.device) / 8;
  auto group = multicast::UdpGroup::open(options);
  if (!group.ok()) return group.status();
  epoll_event event{};
  event.events = EPOLLIN;  // until its owner has taken what came; a closed socket leaves by itself
  event.data.ptr = group_fd_.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, group.value()->event_fd(), &event);
  return std::shared_ptr<Group>(std::move(group.value()));
}

}  // namespace offpath::fabric::tcp
