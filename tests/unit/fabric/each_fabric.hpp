// SPDX-License-Identifier: BSD-3-Clause
// The fixture of fabric_test: pairs of endpoints of each fabric, and a receiver that keeps what it gets.
// A new fabric adds one Net here and its name at the end of fabric_test.cpp.
#pragma once

#include "base/steady.hpp"
#include "fabric/fabric.hpp"
#include "fabric/loopback/loopback.hpp"
#include "fabric/rdma/device.hpp"
#include "fabric/rdma/rdma_fabric.hpp"
#include "fabric/tcp/tcp_fabric.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include "../../wires.hpp"

#include <gtest/gtest.h>
#include <ucp/api/ucp_version.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>

namespace offpath::fabric {
using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);  // against hanging only; nothing takes a second

class Net {
 public:
  virtual ~Net() = default;
  virtual std::unique_ptr<Fabric> make() = 0;
  // The endpoint made as number `index` dies.
  virtual void kill(uint32_t index, std::unique_ptr<Fabric>& endpoint) = 0;
};

class LoopbackNet : public Net {
 public:
  std::unique_ptr<Fabric> make() override { return network_.make_endpoint(); }
  void kill(uint32_t index, std::unique_ptr<Fabric>&) override { network_.cut(index); }

 private:
  LoopbackNetwork network_{99};
};

// Of endpoints of one process.
class ContextNet : public Net {
 public:
  std::unique_ptr<Fabric> make() override {
    auto endpoint = context_->make_endpoint();
    EXPECT_TRUE(endpoint.ok()) << endpoint.status().text();
    return std::move(endpoint.value());
  }
  void kill(uint32_t, std::unique_ptr<Fabric>& endpoint) override { endpoint.reset(); }

 protected:
  void open(base::Result<std::unique_ptr<Context>> context) {
    EXPECT_TRUE(context.ok()) << context.status().text();
    context_ = std::move(context.value());
  }

 private:
  std::unique_ptr<Context> context_;
};

class UcxNet : public ContextNet {
 public:
  explicit UcxNet(bool rendezvous) {
    rendezvous ? setenv("OFFPATH_UCX_RNDV_THRESH", "64K", 1) : unsetenv("OFFPATH_UCX_RNDV_THRESH");
    set_test_wires();
    setenv("OFFPATH_UCX_KEEPALIVE_INTERVAL", "1s", 1);  // by which the other end of a connection notices
    unsetenv("OFFPATH_FABRIC_SECURITY");
    open(open_ucx({}));
  }
};

class TcpNet : public ContextNet {
 public:
  explicit TcpNet(std::string security) {
    std::replace(security.begin(), security.end(), '_', '-');  // which a test's name cannot have
    setenv("OFFPATH_FABRIC_SECURITY", security.c_str(), 1);
    setenv("OFFPATH_UCX_NET_DEVICES", "lo", 1);
    open(open_tcp({1, 2, 3}));
  }
};

class RdmaNet : public ContextNet {
 public:
  RdmaNet() {
    unsetenv("OFFPATH_FABRIC_SECURITY");
    setenv("OFFPATH_UCX_NET_DEVICES", "lo", 1);
    open(open_rdma({1, 2, 3}));
  }
};

// Of memory that an RDMA card may use, as that of services is.
template <typename T>
struct SteadyAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = SteadyAllocator<U>;
  };
  T* allocate(size_t count) {
    T* const data = std::allocator<T>::allocate(count);
    ranges()[data] = base::Steady(data, count * sizeof(T));
    return data;
  }
  void deallocate(T* data, size_t count) {
    ranges().erase(data);
    std::allocator<T>::deallocate(data, count);
  }
  static std::map<T*, base::Steady>& ranges() {
    static auto* const all = new std::map<T*, base::Steady>;
    return *all;
  }
};
using Data = std::vector<uint8_t, SteadyAllocator<uint8_t>>;

enum class OnAnnounced { fetch, drop, keep };

class Recorder : public Receiver {
 public:
  explicit Recorder(Fabric& fabric) : fabric_(fabric) { fabric.set_receiver(this); }
  void on_message(Bytes header, Bytes payload) override {
    arrive({header.begin(), header.end()}, {payload.begin(), payload.end()});
  }
  void on_announced(Bytes header, size_t payload_bytes, Announced handle) override {
    ++announced;
    const Data head(header.begin(), header.end());
    if (policy == OnAnnounced::drop) return fabric_.drop(handle);
    waiting.push_back({head, payload_bytes, handle});
    if (policy == OnAnnounced::fetch) fetch_one();
  }
  void on_fetched(uint64_t context, bool success) override {
    ASSERT_TRUE(fetching.contains(context));
    if (success) arrive(fetching[context].first, fetching[context].second);
    if (!success) unfetched.push_back(fetching[context].second);
    fetched_well += success ? 1 : 0;
    fetching.erase(context);
  }
  void on_sent(uint64_t context, bool success) override {
    EXPECT_TRUE(sent.emplace(context, success).second) << "reported twice";
  }
  void on_peer_lost(Peer peer) override { lost.push_back(peer); }

  void fetch_one() {
    const Waiting next = waiting.front();
    waiting.pop_front();
    const uint64_t context = ++last_context_;
    auto& [head, data] = fetching[context];
    head = next.header;
    data.resize(next.bytes);
    fabric_.fetch(next.handle, data.data(), next.bytes, context);
  }

  struct Waiting {
    Data header;
    size_t bytes;
    Announced handle;
  };
  OnAnnounced policy = OnAnnounced::fetch;
  std::multimap<Data, Data> messages;  // header -> payload
  std::function<void()> then;          // runs inside the callback
  std::deque<Waiting> waiting;
  std::map<uint64_t, std::pair<Data, Data>> fetching;
  std::vector<Data> unfetched;  // what is where a payload was to go that has not come
  std::map<uint64_t, bool> sent;
  std::vector<Peer> lost;
  size_t announced = 0, fetched_well = 0;

 private:
  void arrive(Data header, Data payload) {
    messages.emplace(std::move(header), std::move(payload));
    if (then) then();
  }
  Fabric& fabric_;
  uint64_t last_context_ = 0;
};

class FabricTest : public ::testing::TestWithParam<const char*> {
 protected:
  FabricTest() {
    const std::string name = GetParam();
    if (name == "rdma" && !rdma::Device::open("").ok()) return;
    if (name == "rdma") {
      net = std::make_unique<RdmaNet>();
    } else if (name == "loopback") {
      net = std::make_unique<LoopbackNet>();
    } else if (name.starts_with("tcp")) {
      net = std::make_unique<TcpNet>(name == "tcp" ? "" : name.c_str() + strlen("tcp_"));
    } else {
      net = std::make_unique<UcxNet>(strcmp(GetParam(), "ucx_rendezvous") == 0);
    }
    a = net->make();
    b = net->make();
    at_a = std::make_unique<Recorder>(*a);
    at_b = std::make_unique<Recorder>(*b);
  }
  ~FabricTest() override { a.reset(), b.reset(); }
  void SetUp() override {
    if (net == nullptr) GTEST_SKIP() << "no RDMA device: it runs in machines (tests/python/test_lab_rdma.py)";
  }
  bool until(const std::function<bool()>& done) {
    const auto end = Clock::now() + kPatience;
    while (!done() && Clock::now() < end) {
      if (a) a->progress();
      if (b) b->progress();
    }
    return done();
  }
  void settle() {
    for (int i = 0; i < 2000; ++i) a->progress(), b->progress();
  }
  Peer connect(Fabric& from, Fabric& to) { return connect(from, to.address()); }
  Peer connect(Fabric& from, const std::vector<uint8_t>& address) {
    const auto peer = from.connect(address);
    EXPECT_TRUE(peer.ok()) << peer.status().text();
    return peer.value();
  }
  // How many of so many long payloads at least wait to be named a place: it may be one after the other.
  static size_t announced_at_once(size_t count) {
    const std::string name = GetParam();
    return name.starts_with("tcp") || name == "rdma" ? 1 : count;
  }
  // UCX as it is by default has everything eager.
  static bool announces() { return strcmp(GetParam(), "ucx") != 0; }
  static Data pattern(size_t bytes, uint8_t seed) {
    Data out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(i * 7 + i / 251 + seed);
    return out;
  }

  std::unique_ptr<Net> net;
  std::unique_ptr<Fabric> a, b;
  std::unique_ptr<Recorder> at_a, at_b;
};

}  // namespace offpath::fabric
