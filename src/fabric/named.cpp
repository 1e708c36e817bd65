// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/named.hpp"

#include <algorithm>

namespace offpath::fabric {
namespace {

using base::Status;

constexpr uint8_t kEndOfName = ':';
constexpr size_t kMaxNameBytes = 15;

bool is_of_name(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

// The name that an address begins with, of whomever; empty: it is no address.
std::string name_in(Bytes address) {
  const auto end = std::find_if_not(address.begin(), address.end(), is_of_name);
  const auto bytes = static_cast<size_t>(end - address.begin());
  if (end == address.end() || *end != kEndOfName || bytes > kMaxNameBytes) return {};
  return {address.begin(), end};
}

}  // namespace

Status Named::open() {
  if (fabric_ != nullptr) return {};
  auto opened = context_.make_endpoint();
  if (!opened.ok()) return opened.status();
  fabric_ = std::move(opened.value());
  fabric_->set_receiver(receiver_);
  return {};
}

void Named::set_receiver(Receiver* receiver) {
  receiver_ = receiver;
  if (fabric_ != nullptr) fabric_->set_receiver(receiver);
}

std::vector<uint8_t> Named::address() const {
  if (fabric_ == nullptr) return {};
  const std::vector<uint8_t> own = fabric_->address();
  std::vector<uint8_t> out(name_.begin(), name_.end());
  out.push_back(kEndOfName);
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

std::optional<Bytes> Named::own_part(Bytes address) const {
  if (name_in(address) != name_) return std::nullopt;
  return address.subspan(name_.size() + 1);
}

base::Result<Peer> Named::connect(Bytes address) {
  if (fabric_ == nullptr) {
    return Status::error(OFFPATH_ERR_PEER_LOST, "a member on another node, where none was to be");
  }
  if (const auto own = own_part(address)) return fabric_->connect(*own);
  const std::string theirs = name_in(address);
  if (theirs.empty()) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a peer's address of %zu bytes names no fabric", address.size());
  }
  return Status::error(OFFPATH_ERR_PEER_LOST,
                       "a peer service uses the fabric '%s', this one '%s' (they cannot reach each other). Set "
                       "OFFPATH_FABRIC alike on all nodes",
                       theirs.c_str(), name_.c_str());
}

std::optional<Peer> Named::find(Bytes address) const {
  const auto own = own_part(address);
  return fabric_ == nullptr || !own ? std::nullopt : fabric_->find(*own);
}

}  // namespace offpath::fabric
