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

class DeviceGroup final : public Group {
 public:
  DeviceGroup(std::unique_ptr<multicast::UdpGroup> group, uint64_t rate) : group_(std::move(group)), rate_(rate) {}
  size_t chunk_bytes() const override { return group_->chunk_bytes(); }
  bool push(uint64_t task, uint32_t chunk, Bytes bytes) override { return group_->push(task, chunk, bytes); }
  bool progress(uint64_t now_ns, Hearer& hearer) override { return group_->progress(now_ns, hearer); }
  bool idle() const override { return group_->idle(); }
  uint64_t wait_ns(uint64_t now_ns) override { return group_->wait_ns(now_ns); }
  void set_rate(double bytes_per_ns) override { group_->set_rate(bytes_per_ns); }
  uint32_t seals() const override { return group_->seals(); }
  void set_seals(uint32_t seals) override { group_->set_seals(seals); }
  uint64_t link_rate() const override { return rate_ / 8; }
  int event_fd() const override { return group_->event_fd(); }
  const GroupCounts& counts() const override { return group_->counts(); }

 private:
  const std::unique_ptr<multicast::UdpGroup> group_;
  const uint64_t rate_;
};

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
  auto group = multicast::UdpGroup::open(options);
  if (!group.ok()) return group.status();
  epoll_event event{};
  event.events = EPOLLIN;  // until its owner has taken what came; a closed socket leaves by itself
  event.data.ptr = group_fd_.get();
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, group.value()->event_fd(), &event);
  return std::shared_ptr<Group>(
      std::make_shared<DeviceGroup>(std::move(group.value()), device_rate(options.socket.device)));
}

}  // namespace offpath::fabric::tcp
