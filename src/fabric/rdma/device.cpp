// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/rdma/device.hpp"

#include "base/log.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <iterator>

namespace offpath::fabric::rdma {
namespace {

using base::Status;
using base::Steady;

constexpr size_t kMostKept = 4096;
constexpr uintptr_t kWindowBytes = 64 << 10;  // what is kept begins and ends at multiples of it, where it may
constexpr uintptr_t kPageBytes = 4 << 10;     // and what is not

Status no_device(const std::string& wanted, const char* why) {
  return Status::error(
      OFFPATH_ERR_NO_SERVICE,
      "the fabric 'rdma' has no device%s%.60s (%s). See 'rdma link' and OFFPATH_UCX_NET_DEVICES, or set "
      "OFFPATH_FABRIC=tcp",
      wanted.empty() ? "" : " ", wanted.c_str(), why);
}

// In units of 2.5 Gbit/s. Never 0.
int rate(const ibv_port_attr& port) {
  static constexpr int kOfLane[] = {1, 2, 4, 4, 6, 10, 20, 40};  // by the bit that says it
  const int bit = std::min(std::countr_zero(port.active_speed), static_cast<int>(std::size(kOfLane)) - 1);
  const int width = port.active_width;
  const int lanes = width == 2 ? 4 : width == 4 ? 8 : width == 8 ? 12 : width == 16 ? 2 : 1;
  return lanes * kOfLane[bit];
}

}  // namespace

base::Result<std::unique_ptr<Device>> Device::open(const std::string& name) {
  std::unique_ptr<Device> device(new Device);
  if (const Status status = device->choose_port(name); !status.ok()) return status;
  device->domain_.reset(ibv_alloc_pd(device->context()));
  if (device->domain_ == nullptr) return no_device(name, strerror(errno));
  device->choose_gid();
  device->end_ = base::Fd(eventfd(0, EFD_CLOEXEC));
  const int said = device->context()->async_fd;
  fcntl(said, F_SETFL, fcntl(said, F_GETFL) | O_NONBLOCK);
  Steady::add(*device);
  return device;
}

Device::~Device() { Steady::remove(*this); }

Status Device::choose_port(const std::string& wanted) {
  const size_t colon = std::min(wanted.find(':'), wanted.size());
  const std::string name = wanted.substr(0, colon);
  const int port = colon < wanted.size() ? atoi(wanted.c_str() + colon + 1) : 0;
  int best = 0, count = 0;
  const Owned<ibv_device*, ibv_free_device_list> list(ibv_get_device_list(&count));
  for (int i = 0; i < count; ++i) {
    if (!name.empty() && name != ibv_get_device_name(list.get()[i])) continue;
    Owned<ibv_context, ibv_close_device> context(ibv_open_device(list.get()[i]));
    ibv_device_attr limits{};
    if (context == nullptr || ibv_query_device(context.get(), &limits) != 0) continue;
    bool is_best = false;
    for (int each = 1; each <= limits.phys_port_cnt; ++each) {
      ibv_port_attr attributes{};
      const bool asked = port == 0 || port == each;
      if (!asked || ibv_query_port(context.get(), static_cast<uint8_t>(each), &attributes) != 0) continue;
      if (attributes.state != IBV_PORT_ACTIVE || rate(attributes) <= best) continue;
      is_best = true;
      best = rate(attributes);
      port_ = static_cast<uint8_t>(each);
      attributes_ = attributes, limits_ = limits;
    }
    if (is_best) context_ = std::move(context);
  }
  if (context_ != nullptr) return {};
  return no_device(wanted, "none that may be opened has such a port that is active");
}

// On Ethernet: that of RoCE version 2 with an IPv4 address, which routers know, if there is one; else another of version 2.
void Device::choose_gid() {
  static constexpr uint8_t kIpv4[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  int best = 0;
  for (int i = 0; i < attributes_.gid_tbl_len && i < 256; ++i) {
    ibv_gid_entry entry{};
    if (ibv_query_gid_ex(context(), port_, static_cast<uint32_t>(i), &entry, 0) != 0) continue;
    const bool routes = entry.gid_type == IBV_GID_TYPE_ROCE_V2;
    const int rank = 1 + (routes ? 1 : 0) + (routes && memcmp(entry.gid.raw, kIpv4, sizeof(kIpv4)) == 0 ? 1 : 0);
    if (rank <= best) continue;
    best = rank;
    gid_ = entry.gid;
    gid_index_ = static_cast<uint8_t>(i);
  }
}

bool Device::hears_its_end() {
  const std::lock_guard lock(mutex_);
  ibv_async_event event{};
  while (!ended_ && ibv_get_async_event(context(), &event) == 0) {
    const bool is_end = event.event_type == IBV_EVENT_DEVICE_FATAL || event.event_type == IBV_EVENT_CQ_ERR;
    ibv_ack_async_event(&event);
    if (!is_end) continue;
    ended_ = true;
    [[maybe_unused]] const int told = eventfd_write(end_.get(), 1);
  }
  return ended_;
}

Registered Device::registered(const void* data, size_t bytes, int use) {
  const auto range = Steady::around(data, bytes);
  if (!range) return nullptr;
  const bool keep = range->pages == Steady::Pages::stay;
  const auto begin = reinterpret_cast<uintptr_t>(data), end = begin + bytes;
  if (Registered known = keep ? find(begin, end) : nullptr; known != nullptr) return known;
  const uintptr_t window = keep ? kWindowBytes : kPageBytes;
  const uintptr_t first = std::max(begin / window * window, range->begin);
  const uintptr_t last = std::min((end + window - 1) / window * window, range->end);
  const int access = keep ? IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ : use;
  ibv_mr* const made = ibv_reg_mr(domain(), reinterpret_cast<void*>(first), last - first, access);
  if (made == nullptr) {
    if (!refusal_said_.exchange(true)) {
      base::log_write(
          base::LogLevel::warn,
          "RDMA may not use memory (%s), so it is copied. Raise the limit of locked memory: ulimit -l unlimited",
          strerror(errno));
    }
    return nullptr;
  }
  ++counts_.registrations;
  Registered registered(made, Ends<ibv_dereg_mr>());
  if (!keep) return registered;
  const std::lock_guard lock(mutex_);
  kept_.push_front(registered);
  if (kept_.size() > kMostKept) kept_.pop_back();
  return registered;
}

Registered Device::find(uintptr_t begin, uintptr_t end) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Registered& each) {
    const auto first = reinterpret_cast<uintptr_t>(each->addr);
    return first <= begin && end <= first + each->length;
  });
  if (found == kept_.end()) return nullptr;
  ++counts_.hits;
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front();
}

void Device::on_end(Steady::Range range) {
  const std::lock_guard lock(mutex_);
  kept_.remove_if([&](const Registered& each) {
    const auto first = reinterpret_cast<uintptr_t>(each->addr);
    return first < range.end && range.begin < first + each->length;
  });
}

}  // namespace offpath::fabric::rdma
