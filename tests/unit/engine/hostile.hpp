// SPDX-License-Identifier: BSD-3-Clause
// The fixture of hostile_test: one honest engine, memory with walls, and an endpoint that the test speaks through.
#pragma once

#include "cluster.hpp"
#include "exchange.hpp"
#include "fabric/loopback/loopback.hpp"
#include "wire/batch.hpp"

#include <cstring>
#include <deque>

namespace offpath::testing {
using wire::Kind;
using wire::Message;

constexpr uint64_t kBlock = 200;
constexpr engine::ClientId kClient = 1, kVictim = 2;

// Memory with walls: an access outside the client's own buffers is a failure of the test.
class WalledMemory : public memory::Port {
 public:
  void allow(const std::vector<uint8_t>& buffer) { allowed_.push_back(&buffer); }
  memory::Outcome read(void* to, uint64_t address, size_t bytes, memory::Ticket) const override {
    check(address, bytes);
    return direct_->read(to, address, bytes);
  }
  memory::Outcome write(uint64_t address, const void* from, size_t bytes, memory::Ticket) const override {
    check(address, bytes);
    ++writes;
    return direct_->write(address, from, bytes);
  }
  mutable int writes = 0;
  mutable bool breached = false;

 private:
  void check(uint64_t address, size_t bytes) const {
    for (const auto* buffer : allowed_) {
      const uint64_t begin = address_of(buffer->data());
      if (address >= begin && bytes <= buffer->size() && address - begin <= buffer->size() - bytes) return;
    }
    breached = true;
    FAIL() << "access of " << bytes << " bytes outside the buffers";
  }
  std::vector<const std::vector<uint8_t>*> allowed_;
  std::unique_ptr<memory::Port> direct_ = memory::make_direct();
};

class Hostile : public ::testing::Test, public engine::Observer, public engine::Neighbours, public fabric::Receiver {
 protected:
  explicit Hostile(uint64_t seed = 5, size_t chunk_bytes = 64) : network(seed) {
    fabric = network.make_endpoint();
    raw = network.make_endpoint();
    raw->set_receiver(this);
    engine::Config config;
    config.chunk_bytes = chunk_bytes;
    config.chunks_in_flight = 2;
    config.pool_chunks = 6;
    config.parked_limit = 100;
    honest = std::make_unique<engine::Engine>(config, *fabric, *this, *this);
    if (ports_are_late()) client_port = late_port = make_driven_port(client_memory, seed);
    honest->add_client(kClient, client_port);
    honest->add_client(kVictim, victim_memory);
    client_memory->allow(source), client_memory->allow(target);
    team = join(1, 0);
    to_honest = raw->connect(fabric->address()).value();
  }

  // Member 0 is the honest client, member 1 lives at the raw endpoint.
  engine::TeamHandle join(uint8_t id, uint64_t context) {
    engine::TeamSpec spec;
    spec.id.bytes[0] = id;
    spec.client = kClient;
    spec.context = context;
    spec.members = {{true, 0, {}}, {false, 0, raw->address()}};
    return honest->add_team(std::move(spec)).value();
  }
  void post(uint64_t sequence = 0) {
    honest->post(team, sequence, alltoall_graph(0, 2, address_of(source.data()), address_of(target.data()), kBlock),
                 sequence);
    settle();
  }
  void settle() {
    for (int idle = 0; idle < 60;) {
      const bool busy = honest->progress() | raw->progress() | (late_port != nullptr && late_port->step());
      idle = busy ? 0 : idle + 1;
    }
  }
  // A payload is read when it leaves, which may be later.
  void send(fabric::Bytes header, fabric::Bytes body) {
    leaving.emplace_back(body.begin(), body.end());
    raw->send(to_honest, header, leaving.back(), 0);
  }
  void say(const Message& message, size_t payload_bytes = 0) {
    uint8_t bytes[wire::kMaxMessageBytes];
    const size_t length = wire::encode(message, bytes);
    send(fabric::Bytes(bytes, length), fabric::Bytes(payload).first(payload_bytes));
  }
  using Entries = std::vector<std::pair<Message, size_t>>;  // with the length of their payload
  std::vector<uint8_t> pack(const Entries& entries) {
    std::vector<uint8_t> out(1 << 16);
    size_t used = 0;
    for (const auto& [message, payload_bytes] : entries) {
      used += wire::encode_entry(message, payload_bytes, std::span(out).subspan(used));
      std::copy_n(payload.begin(), payload_bytes, out.begin() + static_cast<std::ptrdiff_t>(used));
      used += payload_bytes;
    }
    out.resize(used);
    return out;
  }
  void say_batch(const std::vector<uint8_t>& entries) {
    Message batch;
    batch.kind = Kind::batch;
    uint8_t bytes[wire::kMaxMessageBytes];
    send(fabric::Bytes(bytes, wire::encode(batch, bytes)), entries);
  }
  // What the honest engine asked of us for an operation.
  Message pull_for(uint64_t number = 0, wire::Channel channel = wire::Channel::collectives) {
    for (const Message& m : heard) {
      if (m.kind == Kind::pull && m.channel == channel && m.number == number) return m;
    }
    ADD_FAILURE() << "no pull was sent";
    return {};
  }
  Message data(uint64_t total, uint64_t offset, uint64_t sequence = 0) {
    Message m;
    m.kind = Kind::data;
    m.pull_id = pull_for(sequence).pull_id;
    m.bytes = total;
    m.offset = offset;
    return m;
  }
  Message about(Kind kind, uint64_t number, uint32_t from, uint32_t to,
                wire::Channel channel = wire::Channel::collectives) {
    Message m;
    m.kind = kind;
    m.team.bytes[0] = 1;
    m.channel = channel;
    m.number = number;
    m.from = from;
    m.to = to;
    m.bytes = m.offset = kBlock;
    m.pull_id = 4711;
    return m;
  }
  // Asks for what the honest engine exports in an operation, and says that it came.
  void take(uint64_t sequence = 0) {
    say(about(Kind::pull, sequence, 0, 1));
    settle();
    say(about(Kind::done, sequence, 0, 1));
    settle();
  }
  void finish_well() {
    say(data(kBlock, 0), 64), say(data(kBlock, 64), 64), say(data(kBlock, 128), 64), say(data(kBlock, 192), 8);
    take();
    EXPECT_EQ(outcome[0], OFFPATH_OK);
    for (uint64_t i = 0; i < kBlock; ++i) ASSERT_EQ(target[kBlock + i], 0xBB);
  }
  void expect_untouched() {
    settle();
    EXPECT_FALSE(client_memory->breached || victim_memory->breached);
    for (const uint8_t byte : guard) ASSERT_EQ(byte, 0xEE);
  }

  void on_step(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_served(engine::ClientId, uint64_t, uint32_t, uint64_t, bool) override {}
  void on_finished(engine::ClientId, uint64_t operation, base::Status status) override {
    EXPECT_TRUE(outcome.emplace(operation, status.code()).second) << "finished twice";
    EXPECT_TRUE(base::is_known_code(status.code())) << status.code();
  }
  void on_member_lost(engine::ClientId, uint64_t, uint32_t rank, engine::Loss) override { lost.insert(rank); }
  void send(uint32_t, const Message& message, fabric::Bytes body) override {
    heard.push_back(message);
    honest->on_neighbour_message(message, body);
  }
  void offer(uint32_t, uint64_t pull_id, std::shared_ptr<memory::Port> memory, uint64_t address,
             uint64_t bytes) override {
    honest->on_neighbour_offer(pull_id, std::move(memory), address, bytes);
  }
  void on_message(fabric::Bytes header, fabric::Bytes entries) override {
    const auto message = wire::decode(header);
    ASSERT_TRUE(message.ok());
    if (message.value().kind != Kind::batch) return heard.push_back(message.value());
    while (const auto entry = wire::take_entry(entries)) on_message(entry->header, entry->payload);
    ASSERT_TRUE(entries.empty());
  }
  void on_announced(fabric::Bytes header, size_t bytes, fabric::Announced handle) override {
    fetched_header.assign(header.begin(), header.end());
    fetched.resize(bytes);
    raw->fetch(handle, fetched.data(), bytes, 0);
  }
  void on_fetched(uint64_t, bool) override { on_message(fetched_header, fetched); }
  void on_sent(uint64_t, bool) override {}
  void on_peer_lost(fabric::Peer) override {}

  std::vector<uint8_t> source = std::vector<uint8_t>(2 * kBlock, 0x11), target = std::vector<uint8_t>(2 * kBlock, 0x22);
  std::deque<std::vector<uint8_t>> leaving;
  std::vector<uint8_t> guard = std::vector<uint8_t>(4096, 0xEE), payload = std::vector<uint8_t>(1 << 16, 0xBB);
  std::shared_ptr<WalledMemory> client_memory = std::make_shared<WalledMemory>();
  std::shared_ptr<WalledMemory> victim_memory = std::make_shared<WalledMemory>();
  std::shared_ptr<memory::Port> client_port = client_memory;
  std::shared_ptr<DrivenPort> late_port;
  fabric::LoopbackNetwork network;
  std::unique_ptr<fabric::Fabric> fabric, raw;
  std::vector<Message> heard;
  std::vector<uint8_t> fetched_header, fetched;
  std::map<uint64_t, offpath_status_t> outcome;
  std::set<uint32_t> lost;
  std::unique_ptr<engine::Engine> honest;
  engine::TeamHandle team = 0;
  fabric::Peer to_honest = 0;
};

// A fabric that hands over several announced payloads at once, as UCX does; the loopback one hands over one by one.
class Script : public fabric::Fabric {
 public:
  void set_receiver(fabric::Receiver*) override {}
  std::vector<uint8_t> address() const override { return {1}; }
  base::Result<fabric::Peer> connect(fabric::Bytes) override { return fabric::Peer{0}; }
  std::optional<fabric::Peer> find(fabric::Bytes) const override { return std::nullopt; }
  void give_up(fabric::Peer) override {}
  void send(fabric::Peer, fabric::Bytes header, fabric::Bytes payload, uint64_t, fabric::Of) override {
    sent.push_back(wire::decode(header).value());
    while (const auto entry = wire::take_entry(payload)) sent.push_back(wire::decode(entry->header).value());
  }
  uint64_t backlog(fabric::Peer) const override { return 0; }
  void fetch(fabric::Announced, void* buffer, size_t bytes, uint64_t context) override {
    memset(buffer, 0xBB, bytes);
    places.push_back(buffer);
    fetching.push_back(context);
  }
  void drop(fabric::Announced) override { ++dropped; }
  bool progress() override { return false; }
  int event_fd() const override { return -1; }
  bool arm() override { return true; }
  void flush(int) override {}
  std::vector<Message> sent;
  std::vector<void*> places;
  std::vector<uint64_t> fetching;
  int dropped = 0;
};

}  // namespace offpath::testing
