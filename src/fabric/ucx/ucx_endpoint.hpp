// SPDX-License-Identifier: BSD-3-Clause
// UcxFabric: the Fabric of one ucp worker. Internal to fabric/ucx.
#pragma once

#include "fabric/fabric.hpp"

#include <ucp/api/ucp.h>

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>

namespace offpath::fabric {

class UcxFabric : public Fabric {
 public:
  // `worker_stays` becomes true where it may not be destroyed before the process ends.
  UcxFabric(ucp_worker_h worker, std::atomic<bool>& worker_stays) : worker_(worker), worker_stays_(worker_stays) {}
  ~UcxFabric() override;
  ucs_status_t open();

  void set_receiver(Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override;
  base::Result<Peer> connect(Bytes address) override;
  std::optional<Peer> find(Bytes address) const override;
  void give_up(Peer peer) override;
  void send(Peer peer, Bytes header, Bytes payload, uint64_t context, Of of) override;
  // What UCX has not given back yet.
  uint64_t backlog(Peer peer) const override { return connections_[peer]->unsent_bytes; }
  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override;
  void drop(Announced handle) override;
  bool progress() override;
  int event_fd() const override { return event_fd_; }
  bool arm() override;
  void flush(int timeout_ms) override;

 private:
  struct Connection {
    UcxFabric* owner;
    Peer peer;
    std::vector<uint8_t> address;
    ucp_ep_h endpoint;  // null: not opened yet, or not to be reached
    bool lost;
    bool reached = false;  // its peer has answered
    uint64_t unsent_bytes = 0;
  };
  enum class Direction { send, fetch };
  // One under way. Kept in a free list: UCX wants the header to stay, and the path must not allocate.
  struct Transfer {
    UcxFabric* owner;
    uint64_t context;
    Direction direction;
    bool report;  // its end, to the receiver
    Peer peer;
    Bytes payload;
    size_t header_bytes;
    uint8_t header[kMaxHeaderBytes];
  };

  static ucs_status_t on_active_message(void* self, const void* header, size_t header_bytes, void* data, size_t bytes,
                                        const ucp_am_recv_param_t* param);
  static void on_send_done(void* request, ucs_status_t status, void* transfer);
  static void on_fetch_done(void* request, ucs_status_t status, size_t bytes, void* transfer);
  static void on_reached(void* request, ucs_status_t status, void* connection);
  static void on_endpoint_error(void* connection, ucp_ep_h endpoint, ucs_status_t status);

  ucs_status_t open_endpoint(Connection& connection);
  void await_reached(Connection& connection);
  void close(Connection& connection);
  Transfer* take_transfer(Direction direction, uint64_t context);
  void end_transfer(Transfer* transfer, bool success);
  void start_send(Transfer* transfer);
  bool progress_worker();
  // UCX has something of ours that it has not given back.
  bool is_busy() const { return under_way_ > 0 || flushing_; }

  ucp_worker_h worker_;
  std::atomic<bool>& worker_stays_;
  int event_fd_ = -1;
  Receiver* receiver_ = nullptr;
  std::map<std::vector<uint8_t>, Peer> by_address_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Transfer>> transfers_;
  std::vector<Transfer*> free_transfers_;
  struct Outcome {
    Transfer* transfer;
    bool success;
  };
  std::vector<Outcome> outcomes_;  // reported from progress(), never from inside send()
  std::vector<Peer> lost_;
  bool inside_worker_ = false;
  // Asked for from inside ucp_worker_progress():
  std::vector<Connection*> unopened_;
  std::vector<Transfer*> held_back_;
  std::vector<Announced> unreleased_;
  Announced announced_now_ = 0;
  size_t under_way_ = 0;
  bool flushing_ = false;
};

}  // namespace offpath::fabric
