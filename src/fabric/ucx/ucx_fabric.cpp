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
