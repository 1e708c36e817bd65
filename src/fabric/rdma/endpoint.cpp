// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/rdma/endpoint.hpp"

#include "base/clock.hpp"
#include "fabric/tcp/frame.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace offpath::fabric::rdma {

using base::Result;
using base::Status;

namespace {
constexpr int kMostReads = 4096;  // at once, of all peers
}

// Pairs go before what they complete into.
Endpoint::~Endpoint() {
  for (const auto& each : peers_) {
    if (each != nullptr) each->pair.reset();
  }
  reads_.clear();
  for (const auto& each : peers_) {
    if (each != nullptr) each->offers.clear(), each->waiting.clear();
  }
  bounce_memory_.reset(), trial_memory_.reset();
}

Status Endpoint::open() {
  const auto failed = [](const char* what) { return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, what); };
  channel_.reset(ibv_create_comp_channel(device_.context()));
  if (channel_ == nullptr) return failed("cannot wait for an RDMA device");
  fcntl(channel_->fd, F_SETFL, fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  const int asked = std::min(kMostReads, device_.most_completions());
  completions_.reset(ibv_create_cq(device_.context(), asked, nullptr, channel_.get(), 0));
  if (completions_ == nullptr) return failed("cannot have completions of an RDMA device");
  most_reads_ = static_cast<size_t>(asked);
  const auto own_memory = [&](std::vector<uint8_t>& bytes, base::Steady& steady, Registered& memory, size_t count) {
    bytes.resize(count);
    steady = base::Steady(bytes.data(), count);
    memory = device_.registered(bytes.data(), count, IBV_ACCESS_LOCAL_WRITE);
    return memory != nullptr;
  };
  if (!own_memory(bounce_, bounce_steady_, bounce_memory_, kBounceBytes) ||
      !own_memory(trial_, trial_steady_, trial_memory_, 2 * kTrialBytes))
    return failed("an RDMA device may use no memory");
  epoll_ = base::Fd(epoll_create1(EPOLL_CLOEXEC));
  for (const int fd : {tcp_->event_fd(), channel_->fd, device_.context()->async_fd, device_.end_fd()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return failed("cannot wait for a network");
  }
  return {};
}

Endpoint::Peer& Endpoint::peer(fabric::Peer number) {
  if (number >= peers_.size()) peers_.resize(number + size_t{1});
  if (peers_[number] == nullptr) peers_[number] = std::make_unique<Peer>();
  return *peers_[number];
}

Result<fabric::Peer> Endpoint::connect(Bytes address) {
  const auto found = tcp_->connect(address);
  if (!found.ok()) return found;
  Peer& there = peer(found.value());
  const std::vector<uint8_t> own = tcp_->address();
  there.itself = std::equal(own.begin(), own.end(), address.begin(), address.end());
  if (!std::exchange(there.known, true) && there.lost)
    outcomes_.lost(found.value());  // it had come by itself, and gone
  return found;
}

std::optional<fabric::Peer> Endpoint::find(Bytes address) const {
  const auto found = tcp_->find(address);
  return found && *found < peers_.size() && peers_[*found] != nullptr && peers_[*found]->known ? found : std::nullopt;
}

void Endpoint::send(fabric::Peer number, Bytes header, Bytes payload, uint64_t context, Of of) {
  const bool may_go_bare = of == Of::user_data && payload.size() > kShortBytes;
  if (may_go_bare && offer(number, header, payload, context)) return;
  send_by_tcp(number, header, payload, context, of);
}

// While two endpoints meet, TCP carries what there is.
bool Endpoint::offer(fabric::Peer number, Bytes header, Bytes payload, uint64_t context) {
  Peer& to = peer(number);
  if (to.lost || to.itself) return false;
  if (to.meeting == Meeting::none) greet(number);
  if (to.meeting != Meeting::open || payload.size() > tcp::kMaxPayloadBytes) return false;
  Registered memory = device_.registered(payload.data(), payload.size(), IBV_ACCESS_REMOTE_READ);
  if (memory == nullptr) return false;
  Word word;
  word.kind = Word::Kind::offer;
  word.id = ++last_id_;
  word.from = reinterpret_cast<uint64_t>(payload.data());
  word.key = memory->rkey;
  word.bytes = static_cast<uint32_t>(payload.size());
  word.rest = header;
  to.offers.emplace(word.id, Offer{context, std::move(memory), payload.size()});
  to.offered_bytes += payload.size();
  say(number, word);
  return true;
}

void Endpoint::send_by_tcp(fabric::Peer number, Bytes header, Bytes payload, uint64_t context, Of of) {
  if (payload.size() > kShortBytes) counts_.other_bytes += payload.size();
  tcp_->send(number, header, payload, payload.empty() ? 0 : take_slot({false, context, {}}), of);
}

// Words have no header, which no message of a user lacks.
void Endpoint::say(fabric::Peer number, const Word& word) {
  Word said = word;
  said.to = peer(number).number;
  const uint64_t slot = take_slot({true, 0, encode(said)});
  tcp_->send(number, {}, sending_[slot].bytes, slot);
}

uint64_t Endpoint::take_slot(Sending sending) {
  if (free_slots_.empty()) {
    free_slots_.push_back(sending_.size());
    sending_.emplace_back();
  }
  const uint64_t slot = free_slots_.back();
  free_slots_.pop_back();
  sending_[slot] = std::move(sending);
  return slot;
}

void Endpoint::on_sent(uint64_t slot, bool success) {
  const Sending sent = std::exchange(sending_[slot], {});
  free_slots_.push_back(slot);
  if (!sent.own && receiver_ != nullptr) receiver_->on_sent(sent.context, success);
}

void Endpoint::on_message(Bytes header, Bytes payload) {
  if (!header.empty()) {
    if (receiver_ != nullptr) receiver_->on_message(header, payload);
    return;
  }
  const auto word = decode(payload);
  if (!word) return;
  if (word->kind == Word::Kind::hello) return on_hello(*word);
  if (word->to >= peers_.size() || peers_[word->to] == nullptr || peers_[word->to]->lost) return;
  if (word->kind == Word::Kind::ready) return on_ready(*word);
  if (word->kind == Word::Kind::reached) return on_reached(word->to);
  word->kind == Word::Kind::offer ? on_offer(*word) : on_taken(*word);
}

void Endpoint::on_announced(Bytes header, size_t payload_bytes, Announced handle) {
  if (receiver_ == nullptr) return tcp_->drop(handle);
  receiver_->on_announced(header, payload_bytes, handle);
}

void Endpoint::on_fetched(uint64_t context, bool success) {
  if (receiver_ != nullptr) receiver_->on_fetched(context, success);
}

uint64_t Endpoint::backlog(fabric::Peer number) const {
  const bool met = number < peers_.size() && peers_[number] != nullptr;
  return tcp_->backlog(number) + (met ? peers_[number]->offered_bytes : 0);
}

bool Endpoint::progress() {
  if (receiver_ == nullptr) return false;
  if (has_device_ && device_.has_ended()) lose_device();
  bool busy = tcp_->progress();
  busy |= poll();
  busy |= start_reads();
  for (const fabric::Peer number : std::exchange(broken_, {})) tcp_->give_up(number);
  return outcomes_.report(*receiver_) || busy;
}

bool Endpoint::arm() {
  if (has_device_ && device_.hears_its_end()) return false;
  if (!outcomes_.empty() || !broken_.empty() || may_start_ || !tcp_->arm()) return false;
  if (!std::exchange(armed_, true)) ibv_req_notify_cq(completions_.get(), 0);
  return !poll();  // what has come before that wakes nobody
}

// Nothing is delivered here, but what others are reading from us is waited for.
void Endpoint::flush(int timeout_ms) {
  Receiver* const receiver = std::exchange(receiver_, nullptr);
  const uint64_t end_ns = base::clock_ns() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * 1000000;
  const auto offers = [](const auto& each) { return each != nullptr && !each->offers.empty(); };
  while (std::any_of(peers_.begin(), peers_.end(), offers) && base::clock_ns() < end_ns) tcp_->progress();
  const uint64_t now_ns = base::clock_ns();
  tcp_->flush(now_ns < end_ns ? static_cast<int>((end_ns - now_ns) / 1000000) : 0);
  receiver_ = receiver;
}

RdmaCounts Endpoint::counts() const {
  RdmaCounts counts = counts_;
  counts.registrations = device_.counts().registrations;
  counts.hits = device_.counts().hits;
  return counts;
}

}  // namespace offpath::fabric::rdma
