// SPDX-License-Identifier: BSD-3-Clause
// Link: one end of what joins an agent and a service, on a fabric endpoint of its own. Single threaded: everything
// happens on the thread that calls progress(), also the owner's callbacks.
#pragma once

#include "fabric/fabric.hpp"
#include "wire/link.hpp"

#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace offpath::agent {

// Memory for a payload that comes, and what keeps it there meanwhile.
struct Place {
  uint8_t* data = nullptr;
  std::shared_ptr<const void> keeps;
};

class LinkOwner {
 public:
  virtual ~LinkOwner() = default;
  // Where the payload of that get, got or put is to go, if not to where it comes; null: the link keeps it.
  virtual Place place_for(const wire::LinkMessage& message, size_t bytes) = 0;
  // Of all kinds but rounds. The payload is gone after the call, unless it lies where it was placed.
  virtual void on_message(const wire::LinkMessage& message, fabric::Bytes payload) = 0;
  virtual void on_entry(const wire::LinkEntry& entry) = 0;  // in the order of the other side
  // The payload of a message with that number is the sender's again.
  virtual void on_sent(uint64_t number) = 0;
  virtual void on_lost(const char* why) = 0;  // once
};

class Link : public fabric::Receiver {
 public:
  Link(std::unique_ptr<fabric::Fabric> fabric, LinkOwner& owner);
  ~Link() override;

  fabric::Fabric& fabric() { return *fabric_; }
  // Connects to the other end, once, before anything is sent; a second time is an error.
  base::Status connect(fabric::Bytes address);
  bool connected() const { return peer_.has_value() && !lost_; }
  bool lost() const { return lost_; }

  // `keeps` stays until the payload has left. With `tells` the owner hears of that.
  void send(const wire::LinkMessage& message, fabric::Bytes payload = {}, std::shared_ptr<const void> keeps = nullptr,
            bool tells = false);
  // Leaves with the next end of progress(), or flush().
  void add(wire::EntryKind kind, uint32_t client, fabric::Bytes body = {});
  template <typename Body>
  void add_record(wire::EntryKind kind, uint32_t client, const Body& body) {
    add(kind, client, {reinterpret_cast<const uint8_t*>(&body), sizeof(body)});
  }
  bool progress();
  void flush(int timeout_ms);
  // The other side has said what makes no sense, or nothing for too long.
  void give_up(const char* why);

  // Receiver
  void on_message(fabric::Bytes header, fabric::Bytes payload) override;
  void on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) override;
  void on_fetched(uint64_t context, bool success) override;
  void on_sent(uint64_t context, bool success) override;
  void on_peer_lost(fabric::Peer peer) override;

 private:
  struct Sending {
    std::shared_ptr<const void> keeps;
    uint64_t number = 0;
    bool tells = false;
  };
  struct Fetching {
    wire::LinkMessage message;
    Place place;
    size_t bytes = 0;
    std::vector<uint8_t> own;
  };
  void send_round();
  void take(const wire::LinkMessage& message, fabric::Bytes payload);
  void take_round(uint64_t number, fabric::Bytes payload);

  std::unique_ptr<fabric::Fabric> fabric_;
  LinkOwner& owner_;
  std::optional<fabric::Peer> peer_;
  bool lost_ = false;
  const char* why_ = nullptr;
  std::vector<uint8_t> stream_;  // to be sent
  uint64_t next_round_ = 0;
  uint64_t next_taken_ = 0;
  std::map<uint64_t, std::vector<uint8_t>> early_;  // rounds that have overtaken others
  size_t early_bytes_ = 0;
  std::vector<uint8_t> taken_;  // of the stream; an entry that has not come whole
  std::unordered_map<uint64_t, Sending> sending_;
  std::unordered_map<uint64_t, Fetching> fetching_;
  size_t kept_bytes_ = 0;  // by Fetching::own
  uint64_t next_context_ = 0;
};

}  // namespace offpath::agent
