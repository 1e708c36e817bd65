// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/loopback/loopback.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace offpath::fabric {

namespace {
constexpr uint32_t kIndexBits = 10;  // of a peer: which endpoint it is; the others count how often it was lost
uint32_t index_of(Peer peer) { return peer & ((1U << kIndexBits) - 1); }

// A payload is read when it leaves, not when it is sent: until then whoever writes there changes it.
struct Payload {
  explicit Payload(Bytes bytes) : source(bytes) {}
  void leave() {
    if (!has_left) data.assign(source.begin(), source.end());
    has_left = true;
  }
  Bytes source;
  std::vector<uint8_t> data;
  bool has_left = false;
};

struct Packet {
  Peer from;  // as its receiver calls it
  std::vector<uint8_t> header;
  std::shared_ptr<Payload> payload;  // null: none
};
}  // namespace

struct LoopbackNetwork::State {
  std::mt19937_64 random;
  std::vector<std::vector<Packet>> inbox;  // by endpoint
  std::vector<bool> gone;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> breaks;  // of the connection between two endpoints

  // What `of` calls `other` since their connection was made again.
  Peer peer(uint32_t of, uint32_t other) const {
    const auto broken = breaks.find(std::minmax(of, other));
    return (broken == breaks.end() ? 0 : broken->second) << kIndexBits | other;
  }
};

class LoopbackFabric : public Fabric {
 public:
  LoopbackFabric(LoopbackNetwork::State& network, uint32_t index) : network_(network), index_(index) {}
  ~LoopbackFabric() override {
    for (const Sending& sending : sending_) sending.payload->source = {};  // it never leaves
  }

  void set_receiver(Receiver* receiver) override { receiver_ = receiver; }

  std::vector<uint8_t> address() const override {
    std::vector<uint8_t> out(sizeof(index_));
    memcpy(out.data(), &index_, sizeof(index_));
    return out;
  }

  base::Result<Peer> connect(Bytes address) override {
    uint32_t index = 0;
    if (address.size() < sizeof(index)) return base::Status::error(OFFPATH_ERR_ARGUMENT, "loopback address too short");
    memcpy(&index, address.data(), sizeof(index));
    if (index >= network_.inbox.size()) {
      return base::Status::error(OFFPATH_ERR_ARGUMENT, "loopback address of nobody");
    }
    const Peer peer = network_.peer(index_, index);
    known_.try_emplace(peer, false);
    return peer;
  }

  std::optional<Peer> find(Bytes address) const override {
    uint32_t index = 0;
    if (address.size() < sizeof(index)) return std::nullopt;
    memcpy(&index, address.data(), sizeof(index));
    const Peer peer = network_.peer(index_, index);
    return known_.contains(peer) ? std::optional(peer) : std::nullopt;
  }

  void give_up(Peer peer) override { given_up_.insert(peer); }

  void send(Peer peer, Bytes header, Bytes payload, uint64_t context, Of) override {
    const bool reachable = !is_gone(peer) && !network_.gone[index_];
    const auto kept = payload.empty() ? nullptr : std::make_shared<Payload>(payload);
    const uint32_t to = index_of(peer);
    if (reachable) network_.inbox[to].push_back({network_.peer(to, index_), {header.begin(), header.end()}, kept});
    if (kept != nullptr) sending_.push_back({peer, context, kept});
  }

  uint64_t backlog(Peer peer) const override {
    uint64_t bytes = 0;
    for (const Sending& sending : sending_) {
      if (sending.peer == peer && !sending.payload->has_left) bytes += sending.payload->source.size();
    }
    return bytes;
  }

  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override {
    const auto it = announced_.find(handle);
    const bool good = it != announced_.end() && it->second.size() == bytes;
    if (good) memcpy(buffer, it->second.data(), bytes);
    if (it != announced_.end()) announced_.erase(it);
    fetched_.push_back({context, good});
  }

  void drop(Announced handle) override { announced_.erase(handle); }

  bool progress() override {
    bool busy = report_lost();
    busy |= report_sent();
    for (const auto& [context, good] : std::exchange(fetched_, {})) receiver_->on_fetched(context, good), busy = true;
    auto& inbox = network_.inbox[index_];
    if (network_.gone[index_]) inbox.clear();
    if (inbox.empty()) return busy;
    deliver(take_one(inbox));
    return true;
  }

  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {
    for (const Sending& sending : sending_) sending.payload->leave();
  }

 private:
  bool is_gone(Peer peer) const {
    const uint32_t index = index_of(peer);
    return network_.gone[index] || peer != network_.peer(index_, index) || given_up_.contains(peer);
  }

  // Any packet may come next, except that two without payload between the same pair keep their order.
  Packet take_one(std::vector<Packet>& inbox) {
    size_t pick = network_.random() % inbox.size();
    for (size_t i = 0; i < pick; ++i) {
      if (inbox[i].from == inbox[pick].from && inbox[i].payload == nullptr && inbox[pick].payload == nullptr) {
        pick = i;
        break;
      }
    }
    Packet packet = std::move(inbox[pick]);
    inbox.erase(inbox.begin() + static_cast<std::ptrdiff_t>(pick));
    return packet;
  }

  void deliver(Packet packet) {
    if (is_gone(packet.from)) return;
    if (packet.payload == nullptr) return receiver_->on_message(packet.header, {});
    packet.payload->leave();
    if (packet.payload->data.empty()) return;  // whoever sent it has gone
    if (network_.random() % 2 == 0) return receiver_->on_message(packet.header, packet.payload->data);
    const Announced handle = ++next_handle_;
    const size_t bytes = packet.payload->data.size();
    announced_[handle] = std::move(packet.payload->data);
    receiver_->on_announced(packet.header, bytes, handle);
  }

  // Any of what was sent may have left.
  bool report_sent() {
    const auto sending = std::exchange(sending_, {});
    for (const Sending& next : sending) {
      const bool lost = is_gone(next.peer) || network_.gone[index_];
      if (!lost && !next.payload->has_left && network_.random() % 2 == 0) {
        sending_.push_back(next);
        continue;
      }
      if (!lost) next.payload->leave();
      receiver_->on_sent(next.context, !lost);
    }
    return !sending.empty();
  }

  bool report_lost() {
    bool any = false;
    for (auto& [peer, reported] : known_) {
      if (reported || !is_gone(peer)) continue;
      reported = any = true;
      receiver_->on_peer_lost(peer);
    }
    return any;
  }

  LoopbackNetwork::State& network_;
  uint32_t index_;
  Receiver* receiver_ = nullptr;
  std::map<Peer, bool> known_;  // -> loss was reported
  std::set<Peer> given_up_;
  struct Sending {
    Peer peer;
    uint64_t context;
    std::shared_ptr<Payload> payload;
  };
  std::vector<Sending> sending_;
  std::vector<std::pair<uint64_t, bool>> fetched_;
  std::map<Announced, std::vector<uint8_t>> announced_;
  Announced next_handle_ = 0;
};

LoopbackNetwork::LoopbackNetwork(uint64_t seed) : state_(std::make_unique<State>()) { state_->random.seed(seed); }
LoopbackNetwork::~LoopbackNetwork() = default;

std::unique_ptr<Fabric> LoopbackNetwork::make_endpoint() {
  state_->inbox.emplace_back();
  state_->gone.push_back(false);
  return std::make_unique<LoopbackFabric>(*state_, static_cast<uint32_t>(state_->inbox.size() - 1));
}

void LoopbackNetwork::cut(uint32_t index) { state_->gone[index] = true; }
void LoopbackNetwork::disconnect(uint32_t one, uint32_t other) { ++state_->breaks[std::minmax(one, other)]; }

size_t LoopbackNetwork::in_flight() const {
  size_t count = 0;
  for (const auto& inbox : state_->inbox) count += inbox.size();
  return count;
}

}  // namespace offpath::fabric
