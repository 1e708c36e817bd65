// SPDX-License-Identifier: BSD-3-Clause
// Device: one port of an RDMA device, for the endpoints of a process; their memory that it may reach; and Pair, one reliable
// connection. Internal to fabric/rdma. A Device may be used by different threads, a Pair by its endpoint's.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/steady.hpp"
#include "fabric/fabric.hpp"

#include <infiniband/verbs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace offpath::fabric::rdma {

template <auto End>
struct Ends {
  template <typename T>
  void operator()(T* object) const {
    End(object);
  }
};
template <typename T, auto End>
using Owned = std::unique_ptr<T, Ends<End>>;

// Memory that the device may reach: it may write there by our own reads, and others may read. Lives no longer than the Device.
using Registered = std::shared_ptr<ibv_mr>;

class Device : public base::Steady::Keeper {
 public:
  // `name`: like mlx5_0, or mlx5_0:1 for a port; empty: that with the fastest active port.
  static base::Result<std::unique_ptr<Device>> open(const std::string& name);
  ~Device() override;

  // `use`: what may be done with memory that is not kept, IBV_ACCESS_REMOTE_READ or IBV_ACCESS_LOCAL_WRITE.
  // What covers all of these bytes; they must lie in steady memory. Null: they do not, or the system refuses it. Where pages
  // stay it is kept for the next time, a bounded number; elsewhere it ends with whoever has it.
  Registered registered(const void* data, size_t bytes, int use);
  void on_end(base::Steady::Range range) override;

  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }
  uint8_t port() const { return port_; }
  uint8_t gid_index() const { return gid_index_; }
  const ibv_gid& gid() const { return gid_; }
  const ibv_port_attr& attributes() const { return attributes_; }
  // Whether the device has failed, or is there no more. Who listens to its own descriptor hears it, and by end_fd() whoever was not
  // the first to.
  bool hears_its_end();
  bool has_ended() const { return ended_; }
  int end_fd() const { return end_.get(); }
  int most_completions() const { return limits_.max_cqe; }
  // Of one connection: so many are asked at most, and so many are answered.
  uint8_t reads_asked() const { return bounded(limits_.max_qp_init_rd_atom); }
  uint8_t reads_answered() const { return bounded(limits_.max_qp_rd_atom); }

  struct Counts {
    std::atomic<uint64_t> registrations = 0, hits = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  Device() = default;
  static uint8_t bounded(int reads) { return static_cast<uint8_t>(std::clamp(reads, 0, 16)); }
  base::Status choose_port(const std::string& wanted);
  void choose_gid();
  Registered find(uintptr_t begin, uintptr_t end);

  Owned<ibv_context, ibv_close_device> context_;
  Owned<ibv_pd, ibv_dealloc_pd> domain_;
  ibv_device_attr limits_{};
  uint8_t port_ = 0, gid_index_ = 0;
  ibv_gid gid_{};
  ibv_port_attr attributes_{};
  std::mutex mutex_;
  std::list<Registered> kept_;  // the one used last first
  std::atomic<bool> refusal_said_ = false, ended_ = false;
  base::Fd end_;
  Counts counts_;
};

// What the other end of a connection has to know of this one.
struct PairAddress {
  uint32_t number = 0;  // of the queue pair; 0: there is none
  uint32_t first = 0;   // of the packets
  uint16_t lid = 0;
  uint8_t mtu = 0;
  uint8_t reads = 0;  // answered at once
  std::array<uint8_t, 16> gid{};
};

class Pair {
 public:
  static constexpr uint32_t kMostReads = 64;
  static constexpr uint32_t kMostBytes = 8 << 20;  // of one read

  // Null: the device has none left.
  static std::unique_ptr<Pair> make(Device& device, ibv_cq* completions);
  const PairAddress& address() const { return own_; }
  uint32_t most_bytes() const { return std::min(kMostBytes, device_.attributes().max_msg_sz); }
  // From then on the other end may read. False: it cannot be reached, or was reached before.
  bool join(const PairAddress& other);
  // Its end, and that of all that is under way, comes as a completion with this number.
  bool read(uint64_t number, void* to, const ibv_mr& registered, size_t bytes, uint64_t from, uint32_t key);
  // What is under way ends, and nobody can read any more. False: the device does not do that any more.
  bool break_off();
  bool joined() const { return joined_; }

 private:
  Pair(Device& device, ibv_qp* pair, const PairAddress& own) : device_(device), pair_(pair), own_(own) {}
  bool needs_route(const PairAddress& other) const;
  bool change(ibv_qp_attr attributes, int mask) { return ibv_modify_qp(pair_.get(), &attributes, mask) == 0; }

  Device& device_;
  Owned<ibv_qp, ibv_destroy_qp> pair_;
  PairAddress own_;
  bool joined_ = false;
};

}  // namespace offpath::fabric::rdma
