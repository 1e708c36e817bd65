// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/ucx/ucx_fabric.hpp"

#include "fabric/checksum.hpp"
#include "fabric/ucx/ucx_endpoint.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

namespace offpath::fabric {
namespace {

constexpr unsigned kMessageId = 1;
constexpr auto kEnding = std::chrono::milliseconds(100);

}  // namespace

ucs_status_t UcxFabric::open() {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = kMessageId;
  handler.cb = on_active_message;
  handler.arg = this;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  const ucs_status_t status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return status;
  return ucp_worker_get_efd(worker_, &event_fd_);
}

UcxFabric::~UcxFabric() {
  receiver_ = nullptr;
  const auto end = std::chrono::steady_clock::now() + kEnding;
  for (const auto& connection : connections_) {
    while (!connection->reached && !connection->lost && std::chrono::steady_clock::now() < end) progress_worker();
    close(*connection);
  }
  // What is under way ends in ucp_worker_progress(). Sends of memory that another worker sends, too, end when that one lets go of
  // it, and UCX 1.18 writes to this worker then. So the worker stays where that cannot be waited for.
  while (is_busy() && std::chrono::steady_clock::now() < end) ucp_worker_progress(worker_);
  if (is_busy()) {
    worker_stays_ = true;
  } else {
    ucp_worker_destroy(worker_);
  }
}

// UCX trusts an address it is given and dies of a damaged one, so ours carry a checksum in front.
std::vector<uint8_t> UcxFabric::address() const {
  ucp_worker_attr_t attributes{};
  attributes.field_mask = UCP_WORKER_ATTR_FIELD_ADDRESS | UCP_WORKER_ATTR_FIELD_ADDRESS_FLAGS;
  attributes.address_flags = UCP_WORKER_ADDRESS_FLAG_NET_ONLY;
  if (ucp_worker_query(worker_, &attributes) != UCS_OK) return {};
  const Bytes bytes(reinterpret_cast<const uint8_t*>(attributes.address), attributes.address_length);
  const auto check = checksum(bytes);
  std::vector<uint8_t> out(check.begin(), check.end());
  out.insert(out.end(), bytes.begin(), bytes.end());
  ucp_worker_release_address(worker_, attributes.address);
  return out;
}

base::Result<Peer> UcxFabric::connect(Bytes address) {
  std::vector<uint8_t> key(address.begin(), address.end());
  if (const auto known = by_address_.find(key); known != by_address_.end()) return known->second;
  const Bytes worker_address = address.size() > kCheckBytes ? address.subspan(kCheckBytes) : Bytes();
  const auto check = checksum(worker_address);
  if (worker_address.empty() || !std::equal(check.begin(), check.end(), address.begin())) {
    return base::Status::error(OFFPATH_ERR_ARGUMENT, "a peer's fabric address of %zu bytes is damaged", address.size());
  }
  const Peer peer = static_cast<Peer>(connections_.size());
  auto connection =
      std::make_unique<Connection>(Connection{this, peer, {key.begin() + kCheckBytes, key.end()}, nullptr, false});
  if (inside_worker_) {
    unopened_.push_back(connection.get());
  } else if (const ucs_status_t status = open_endpoint(*connection); status != UCS_OK) {
    return base::Status::error(OFFPATH_ERR_PEER_LOST,
                               "cannot reach a peer service: %s. Check OFFPATH_UCX_NET_DEVICES on "
                               "both nodes",
                               ucs_status_string(status));
  }
  connections_.push_back(std::move(connection));
  by_address_.emplace(std::move(key), peer);
  return peer;
}

std::optional<Peer> UcxFabric::find(Bytes address) const {
  const auto known = by_address_.find({address.begin(), address.end()});
  return known == by_address_.end() ? std::nullopt : std::optional(known->second);
}

// What is under way to it ends at once, and it hears that it is lost, too.
void UcxFabric::give_up(Peer peer) {
  Connection& connection = *connections_[peer];
  if (connection.lost) return;
  on_endpoint_error(&connection, connection.endpoint, UCS_ERR_ENDPOINT_TIMEOUT);
  close(connection);
}

// Closing counts as under way. UCX 1.13 ends the process when one is closed that still waits on an RDMA network for an answer
// of its peer: such a one stays, and with it the worker.
void UcxFabric::close(Connection& connection) {
  if (connection.endpoint == nullptr || !connection.reached) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  param.cb.send = [](void* request, ucs_status_t, void* self) {
    --static_cast<UcxFabric*>(self)->under_way_;
    ucp_request_free(request);
  };
  param.user_data = this;
  if (UCS_PTR_IS_PTR(ucp_ep_close_nbx(std::exchange(connection.endpoint, nullptr), &param))) ++under_way_;
}

ucs_status_t UcxFabric::open_endpoint(Connection& connection) {
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(connection.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_endpoint_error, &connection};
  const ucs_status_t status = ucp_ep_create(worker_, &params, &connection.endpoint);
  if (status == UCS_OK) await_reached(connection);
  return status;
}

void UcxFabric::await_reached(Connection& connection) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_reached;
  param.user_data = &connection;
  if (void* request = ucp_ep_flush_nbx(connection.endpoint, &param); UCS_PTR_IS_PTR(request)) {
    ++under_way_;
  } else {
    connection.reached = request == nullptr;
  }
}

void UcxFabric::on_reached(void* request, ucs_status_t status, void* user) {
  auto* connection = static_cast<Connection*>(user);
  --connection->owner->under_way_;
  connection->reached = status == UCS_OK;
  ucp_request_free(request);
}

UcxFabric::Transfer* UcxFabric::take_transfer(Direction direction, uint64_t context) {
  if (free_transfers_.empty()) {
    transfers_.push_back(std::make_unique<Transfer>());
    free_transfers_.push_back(transfers_.back().get());
  }
  Transfer* transfer = free_transfers_.back();
  free_transfers_.pop_back();
  transfer->owner = this;
  transfer->context = context;
  transfer->direction = direction;
  transfer->report = true;
  ++under_way_;
  return transfer;
}

void UcxFabric::end_transfer(Transfer* transfer, bool success) {
  --under_way_;
  if (transfer->direction == Direction::send) connections_[transfer->peer]->unsent_bytes -= transfer->payload.size();
  if (transfer->report) {
    outcomes_.push_back({transfer, success});
  } else {
    free_transfers_.push_back(transfer);
  }
}

void UcxFabric::send(Peer peer, Bytes header, Bytes payload, uint64_t context, Of) {
  Transfer* transfer = take_transfer(Direction::send, context);
  transfer->report = !payload.empty();
  transfer->peer = peer;
  transfer->payload = payload;
  connections_[peer]->unsent_bytes += payload.size();
  transfer->header_bytes = header.size();
  memcpy(transfer->header, header.data(), header.size());
  if (inside_worker_) {
    held_back_.push_back(transfer);
  } else {
    start_send(transfer);
  }
}

void UcxFabric::start_send(Transfer* transfer) {
  const Connection& connection = *connections_[transfer->peer];
  if (connection.lost) return end_transfer(transfer, false);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = on_send_done;
  param.user_data = transfer;
  void* request = ucp_am_send_nbx(connection.endpoint, kMessageId, transfer->header, transfer->header_bytes,
                                  transfer->payload.data(), transfer->payload.size(), &param);
  if (request == nullptr) return end_transfer(transfer, true);
  if (UCS_PTR_IS_ERR(request)) end_transfer(transfer, false);
}

// UCX 1.13 gives the buffer that it delivers from away when, from inside that delivery, a send finds the connection
// broken or an endpoint is made that takes the connection over, and dies of it: both wait until it has delivered.
bool UcxFabric::progress_worker() {
  inside_worker_ = true;
  const bool busy = ucp_worker_progress(worker_) != 0;
  inside_worker_ = false;
  for (Connection* connection : unopened_) {
    const ucs_status_t status = open_endpoint(*connection);
    if (status != UCS_OK) on_endpoint_error(connection, nullptr, status);
  }
  unopened_.clear();
  for (Transfer* transfer : held_back_) start_send(transfer);
  held_back_.clear();
  for (const Announced handle : std::exchange(unreleased_, {})) drop(handle);
  return busy;
}

void UcxFabric::on_send_done(void* request, ucs_status_t status, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->owner->end_transfer(transfer, status == UCS_OK);
  ucp_request_free(request);
}

ucs_status_t UcxFabric::on_active_message(void* user, const void* header, size_t header_bytes, void* data, size_t bytes,
                                          const ucp_am_recv_param_t* param) {
  auto* self = static_cast<UcxFabric*>(user);
  if (self->receiver_ == nullptr) return UCS_OK;
  const Bytes head(static_cast<const uint8_t*>(header), header_bytes);
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) {
    self->announced_now_ = reinterpret_cast<Announced>(data);
    self->receiver_->on_announced(head, bytes, self->announced_now_);
    return std::exchange(self->announced_now_, 0) == 0 ? UCS_OK : UCS_INPROGRESS;  // UCS_OK: we want nothing of it
  }
  self->receiver_->on_message(head, Bytes(static_cast<const uint8_t*>(data), bytes));
  return UCS_OK;
}

void UcxFabric::fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) {
  Transfer* transfer = take_transfer(Direction::fetch, context);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.cb.recv_am = on_fetch_done;
  param.user_data = transfer;
  void* request = ucp_am_recv_data_nbx(worker_, reinterpret_cast<void*>(handle), buffer, bytes, &param);
  if (UCS_PTR_IS_ERR(request)) end_transfer(transfer, false);
}

void UcxFabric::on_fetch_done(void* request, ucs_status_t status, size_t, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  transfer->owner->end_transfer(transfer, status == UCS_OK);
  ucp_request_free(request);
}

// What is being announced is not ours to release yet.
void UcxFabric::drop(Announced handle) {
  if (handle == announced_now_) {
    announced_now_ = 0;
  } else if (inside_worker_) {
    unreleased_.push_back(handle);
  } else {
    ucp_am_data_release(worker_, reinterpret_cast<void*>(handle));
  }
}

void UcxFabric::on_endpoint_error(void* user, ucp_ep_h, ucs_status_t) {
  auto* connection = static_cast<Connection*>(user);
  if (connection->lost) return;
  connection->lost = true;
  connection->owner->lost_.push_back(connection->peer);
}

bool UcxFabric::progress() {
  bool busy = progress_worker();
  while (!outcomes_.empty() || !lost_.empty()) {
    busy = true;
    for (const Outcome& outcome : std::exchange(outcomes_, {})) {
      Transfer& transfer = *outcome.transfer;
      free_transfers_.push_back(outcome.transfer);
      if (transfer.direction == Direction::send) {
        receiver_->on_sent(transfer.context, outcome.success);
      } else {
        receiver_->on_fetched(transfer.context, outcome.success);
      }
    }
    for (const Peer peer : std::exchange(lost_, {})) receiver_->on_peer_lost(peer);
  }
  return busy;
}

bool UcxFabric::arm() { return outcomes_.empty() && lost_.empty() && ucp_worker_arm(worker_) == UCS_OK; }

void UcxFabric::flush(int timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = [](void* request, ucs_status_t, void* self) {
    static_cast<UcxFabric*>(self)->flushing_ = false;
    ucp_request_free(request);
  };
  param.user_data = this;
  if (!flushing_) flushing_ = UCS_PTR_IS_PTR(ucp_worker_flush_nbx(worker_, &param));
  while (flushing_ && std::chrono::steady_clock::now() < end) progress_worker();
}

}  // namespace offpath::fabric
