// SPDX-License-Identifier: BSD-3-Clause
// Addresses and connections: made, found, closed, lost.
#include "fabric/checksum.hpp"
#include "fabric/rdma.hpp"
#include "fabric/ucx/ucx_endpoint.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

#include <algorithm>

namespace offpath::fabric {

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
// of its peer: such a one stays, and with it the worker. Elsewhere none may stay: nothing else ends what is sent over it, and
// the peer would not learn of the end.
void UcxFabric::close(Connection& connection) {
  if (connection.endpoint == nullptr || (!connection.reached && has_rdma())) return;
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

void UcxFabric::on_endpoint_error(void* user, ucp_ep_h, ucs_status_t) {
  auto* connection = static_cast<Connection*>(user);
  if (connection->lost) return;
  connection->lost = true;
  connection->owner->lost_.push_back(connection->peer);
}

}  // namespace offpath::fabric
