// SPDX-License-Identifier: BSD-3-Clause
// Endpoint: the RDMA fabric of one worker, around one of the fabric tcp. Internal to fabric/rdma. By file:
//   endpoint   what a Fabric does
//   reads      what others offer, and how it is read
//   meeting    how two endpoints come to a connection of their cards, and its end
#pragma once

#include "base/fd.hpp"
#include "fabric/outcomes.hpp"
#include "fabric/rdma/device.hpp"
#include "fabric/rdma/rdma_fabric.hpp"
#include "fabric/rdma/words.hpp"

#include <deque>
#include <map>
#include <set>

namespace offpath::fabric::rdma {

class Endpoint final : public Fabric, private Receiver {
 public:
  Endpoint(Device& device, std::unique_ptr<Fabric> tcp) : device_(device), tcp_(std::move(tcp)) {
    tcp_->set_receiver(this);
  }
  ~Endpoint() override;
  base::Status open();

  void set_receiver(Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return tcp_->address(); }
  base::Result<fabric::Peer> connect(Bytes address) override;
  std::optional<fabric::Peer> find(Bytes address) const override;
  void give_up(fabric::Peer peer) override { tcp_->give_up(peer); }
  void send(fabric::Peer peer, Bytes header, Bytes payload, uint64_t context, Of of) override;
  uint64_t backlog(fabric::Peer peer) const override;
  Connection connection(fabric::Peer peer) const override { return tcp_->connection(peer); }
  Connection connections() override { return tcp_->connections(); }
  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override;
  void drop(Announced handle) override;
  base::Result<std::shared_ptr<Group>> join(const GroupSpec& spec) override { return tcp_->join(spec); }
  bool progress() override;
  int event_fd() const override { return epoll_.get(); }
  bool arm() override;
  void flush(int timeout_ms) override;

  RdmaCounts counts() const;

 private:
  static constexpr Announced kOurs = Announced{1} << 63;  // those of TCP have it not
  static constexpr size_t kBounceBytes = 256 << 10;
  static constexpr uint32_t kTrialBytes = 8 << 10;  // more than one packet of any network
  static constexpr uint64_t kTrial = 0;             // no payload's id

  // A payload of ours that the peer may read.
  struct Offer {
    uint64_t context;
    Registered memory;
    size_t bytes;
  };
  // A payload of the peer.
  struct Announcement {
    fabric::Peer peer;
    uint64_t id, from;
    uint32_t key, bytes;
  };
  struct Read {
    Announcement what;
    uint8_t* buffer;
    uint64_t context;
    Registered place;    // null: through our own memory
    uint32_t done = 0;   // bytes
    uint32_t asked = 0;  // of the part under way; 0: it waits
  };
  enum class Meeting : uint8_t { none, greeted, open, without };  // open: both have read; without: TCP only
  struct Peer {
    bool known = false;  // by connect()
    bool lost = false, itself = false;
    Meeting meeting = Meeting::none;
    bool greeted = false;  // we have said hello
    bool trying = false, reaches = false, is_reached = false;
    uint32_t number = 0;  // ours, to it
    std::unique_ptr<Pair> pair;
    std::map<uint64_t, Offer> offers;
    std::deque<Read> waiting;
    uint32_t reading = 0;  // under way
    uint64_t offered_bytes = 0;
  };
  struct Sending {
    bool own = false;  // of ours, nobody waits for it
    uint64_t context = 0;
    std::vector<uint8_t> bytes;
  };

  // Receiver, of TCP
  void on_message(Bytes header, Bytes payload) override;
  void on_announced(Bytes header, size_t payload_bytes, Announced handle) override;
  void on_fetched(uint64_t context, bool success) override;
  void on_sent(uint64_t number, bool success) override;
  void on_peer_lost(fabric::Peer peer) override;

  // endpoint.cpp
  Peer& peer(fabric::Peer number);
  void send_by_tcp(fabric::Peer peer, Bytes header, Bytes payload, uint64_t context, Of of);
  bool offer(fabric::Peer number, Bytes header, Bytes payload, uint64_t context);
  void say(fabric::Peer number, const Word& word);
  uint64_t take_slot(Sending sending);

  // reads.cpp
  void on_offer(const Word& word);
  void on_taken(const Word& word);
  void done_with(const Announcement& what);
  bool start_reads();
  bool start(Peer& peer, Read& read);
  bool poll();
  void on_read(uint64_t number, ibv_wc_status status);
  void fail(const Read& read);

  // meeting.cpp
  void greet(fabric::Peer number);
  void on_hello(const Word& word);
  void on_ready(const Word& word);
  void on_trial(fabric::Peer number, ibv_wc_status status);
  void on_reached(fabric::Peer number);
  void go_without(fabric::Peer number);
  void end_pair(fabric::Peer number);
  void lose_device();

  Device& device_;
  Receiver* receiver_ = nullptr;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::vector<Sending> sending_;
  std::vector<uint64_t> free_slots_;
  std::map<Announced, Announcement> announced_;
  std::map<uint64_t, Read> reads_;  // under way, by number
  std::set<fabric::Peer> eager_;    // they have reads that wait
  size_t most_reads_ = 0;           // under way
  Outcomes outcomes_;
  std::vector<fabric::Peer> broken_;
  uint64_t last_id_ = 0;
  bool may_start_ = false;  // reads that wait
  bool bounce_busy_ = false, armed_ = false, has_device_ = true;
  std::vector<uint8_t> bounce_, trial_;  // what others try to read, and behind it what we did
  base::Steady bounce_steady_, trial_steady_;
  Registered bounce_memory_, trial_memory_;
  RdmaCounts counts_;
  Owned<ibv_comp_channel, ibv_destroy_comp_channel> channel_;
  Owned<ibv_cq, ibv_destroy_cq> completions_;
  base::Fd epoll_;
  std::unique_ptr<Fabric> tcp_;
};

}  // namespace offpath::fabric::rdma
