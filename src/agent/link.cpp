// SPDX-License-Identifier: BSD-3-Clause
#include "agent/link.hpp"

#include "base/log.hpp"

#include <utility>

namespace offpath::agent {

using base::Status;
using wire::LinkKind;
using wire::LinkMessage;

namespace {
constexpr size_t kMostEarly = 1 << 16;
constexpr size_t kMostKeptBytes = 64 << 20;  // the other side has no more than a few MiB under way
}  // namespace

Link::Link(std::unique_ptr<fabric::Fabric> fabric, LinkOwner& owner) : fabric_(std::move(fabric)), owner_(owner) {
  fabric_->set_receiver(this);
}

Link::~Link() {
  fabric_->set_receiver(nullptr);
  fabric_.reset();  // it may be reading what is kept
}

Status Link::connect(fabric::Bytes address) {
  if (peer_) return Status::error(OFFPATH_ERR_STATE, "a link has two ends");
  auto peer = fabric_->connect(address);
  if (!peer.ok()) return peer.status();
  peer_ = peer.value();
  return {};
}

// ---- sending --------------------------------------------------------------------------------------------------------

void Link::send(const LinkMessage& message, fabric::Bytes payload, std::shared_ptr<const void> keeps, bool tells) {
  if (!connected()) {
    if (tells && !payload.empty()) owner_.on_sent(message.number);
    return;
  }
  uint8_t header[wire::kLinkMessageBytes];
  encode(message, header);
  const uint64_t context = ++next_context_;
  if (!payload.empty()) sending_[context] = {std::move(keeps), message.number, tells};
  fabric_->send(*peer_, header, payload, context);
}

void Link::add(wire::EntryKind kind, uint32_t client, fabric::Bytes body) {
  if (!lost_) add_entry(stream_, kind, client, body);
}

void Link::send_round() {
  if (stream_.empty() || !connected()) return;
  const auto stream = std::make_shared<const std::vector<uint8_t>>(std::exchange(stream_, {}));
  for (fabric::Bytes rest(*stream); !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), fabric::kShortBytes));
    LinkMessage message;
    message.number = next_round_++;
    send(message, part, stream);
    rest = rest.subspan(part.size());
  }
}

bool Link::progress() {
  send_round();
  bool busy = fabric_->progress();
  if (const char* why = std::exchange(why_, nullptr); why != nullptr && !lost_) {
    lost_ = busy = true;
    if (peer_) fabric_->give_up(*peer_);
    owner_.on_lost(why);
  }
  busy |= !stream_.empty();
  send_round();
  return busy;
}

void Link::flush(int timeout_ms) {
  send_round();
  fabric_->flush(timeout_ms);
}

// Not from inside a callback of the fabric.
void Link::give_up(const char* why) {
  if (why_ == nullptr) why_ = why;
}

// ---- receiving ------------------------------------------------------------------------------------------------------

void Link::on_message(fabric::Bytes header, fabric::Bytes payload) {
  const auto message = wire::decode_link(header);
  if (lost_) return;
  if (!message.ok()) {
    base::log_write(base::LogLevel::warn, "%s", message.status().text());
    return give_up("it says what makes no sense");
  }
  take(message.value(), payload);
}

void Link::on_announced(fabric::Bytes header, size_t payload_bytes, fabric::Announced handle) {
  const auto message = wire::decode_link(header);
  const size_t most = wire::kMaxAccessBytes + wire::kMaxAccessRanges * 16;
  if (lost_ || !message.ok() || payload_bytes > most || kept_bytes_ > kMostKeptBytes) {
    fabric_->drop(handle);
    return give_up("it sends what makes no sense");
  }
  Fetching next{message.value(), {}, payload_bytes, {}};
  if (message->kind != LinkKind::round) next.place = owner_.place_for(next.message, payload_bytes);
  if (next.place.data == nullptr) {
    next.own.resize(payload_bytes);
    next.place.data = next.own.data();
    kept_bytes_ += payload_bytes;
  }
  uint8_t* const data = next.place.data;
  const uint64_t context = ++next_context_;
  fetching_.emplace(context, std::move(next));
  fabric_->fetch(handle, data, payload_bytes, context);
}

void Link::on_fetched(uint64_t context, bool success) {
  const auto found = fetching_.find(context);
  if (found == fetching_.end()) return;
  const Fetching fetched = std::move(found->second);
  fetching_.erase(found);
  kept_bytes_ -= fetched.own.size();
  if (success && !lost_) take(fetched.message, {fetched.place.data, fetched.bytes});
}

void Link::on_sent(uint64_t context, bool) {
  auto node = sending_.extract(context);
  if (!node.empty() && node.mapped().tells) owner_.on_sent(node.mapped().number);
}

void Link::on_peer_lost(fabric::Peer peer) {
  if (peer_ && peer == *peer_) give_up("the connection has ended");
}

void Link::take(const LinkMessage& message, fabric::Bytes payload) {
  if (message.kind != LinkKind::round) return owner_.on_message(message, payload);
  const bool too_many = early_.size() > kMostEarly || early_bytes_ > kMostKeptBytes;
  if (message.number < next_taken_ || too_many) return give_up("its rounds make no sense");
  if (message.number > next_taken_) {
    const bool is_new = early_.try_emplace(message.number, payload.begin(), payload.end()).second;
    if (is_new) early_bytes_ += payload.size();
    return;
  }
  take_round(message.number, payload);
  for (auto next = early_.begin(); next != early_.end() && next->first == next_taken_; next = early_.begin()) {
    const auto round = std::move(next->second);
    early_.erase(next);
    early_bytes_ -= round.size();
    take_round(next_taken_, round);
  }
}

void Link::take_round(uint64_t number, fabric::Bytes payload) {
  next_taken_ = number + 1;
  taken_.insert(taken_.end(), payload.begin(), payload.end());
  fabric::Bytes rest(taken_);
  while (why_ == nullptr) {
    const auto entry = wire::take_link_entry(rest);
    if (!entry.ok()) return give_up("its rounds make no sense");
    if (!entry.value()) break;
    owner_.on_entry(*entry.value());
  }
  taken_.erase(taken_.begin(), taken_.end() - static_cast<std::ptrdiff_t>(rest.size()));
}

}  // namespace offpath::agent
