// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/endpoint.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/random.hpp"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace offpath::fabric::tcp {

using base::Fd;
using base::Result;
using base::Status;

namespace {
constexpr size_t kScratchBytes = 256 << 10;
static_assert(kScratchBytes >= 2 * BriefIncoming::kLongestBytes);
constexpr uint8_t kLives = 255;
}  // namespace

Endpoint::Endpoint(Options options) : options_(std::move(options)), scratch_(kScratchBytes) {}

Endpoint::~Endpoint() = default;

Status Endpoint::open() {
  base::fill_random(own_.id.data(), own_.id.size());
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  ticker_ = std::make_unique<Ticker>(*this, Fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)));
  if (!epoll_.valid() || !ticker_->timer.valid()) {
    return Status::system_error(OFFPATH_ERR_NO_SERVICE, errno, "cannot wait for other services");
  }
  watch(ticker_->timer.get(), *ticker_, false);
  group_fd_ = std::make_unique<GroupFd>();
  return open_doors();
}

void Endpoint::watch(int fd, Watched& watched, bool known) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = &watched;
  epoll_ctl(epoll_.get(), known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
}

void Endpoint::bury(std::unique_ptr<Watched> watched) {
  if (watched != nullptr) graveyard_.push_back(std::move(watched));
}

Endpoint::Peer& Endpoint::peer_with(const EndpointId& id) {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? add_peer(id, 0) : *peers_[found->second];
}

Endpoint::Peer& Endpoint::add_peer(const EndpointId& id, uint8_t life) {
  const auto number = static_cast<fabric::Peer>(peers_.size());
  by_id_[id] = number;
  peers_.push_back(std::make_unique<Peer>(*this, number, id, life));
  return *peers_.back();
}

Result<fabric::Peer> Endpoint::connect(Bytes address) {
  std::vector<uint8_t> key(address.begin(), address.end());
  if (const auto known = find(address)) return *known;
  auto wanted = EndpointAddress::decode(address);
  if (!wanted) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "a peer's fabric address of %zu bytes is damaged", address.size());
  }
  Peer& peer = peer_with(wanted->id);
  by_address_.emplace(std::move(key), peer.id);
  if (peer.known) return peer.number;
  peer.known = true;
  peer.places = std::move(wanted->places);
  order_by_reach(peer.places, own_.places);
  if (peer.lost) outcomes_.lost(peer.number);  // it had come by itself, and gone
  if (!peer.lost && peer.id != own_.id) open_link(peer.link(Lane::brief));
  return peer.number;
}

std::optional<fabric::Peer> Endpoint::find(Bytes address) const {
  const auto known = by_address_.find({address.begin(), address.end()});
  if (known == by_address_.end()) return std::nullopt;
  const Peer& peer = *peers_[by_id_.at(known->second)];
  return peer.known ? std::optional(peer.number) : std::nullopt;
}

void Endpoint::give_up(fabric::Peer peer) {
  peers_[peer]->given_up = true;
  lose(*peers_[peer], "given up");
}

void Endpoint::send(fabric::Peer number, Bytes header, Bytes payload, uint64_t context, Of of) {
  Peer& peer = *peers_[number];
  const bool possible = !peer.lost && header.size() <= kMaxHeaderBytes && payload.size() <= kMaxPayloadBytes;
  if (!possible) {
    if (!payload.empty()) outcomes_.sent(context, false);
    return;
  }
  if (peer.id == own_.id) return to_self_.push_back({{header.begin(), header.end()}, payload, context});
  const Lane lane = payload.size() <= options_.brief_bytes ? Lane::brief : Lane::bulk;
  Link& link = peer.link(lane);
  const bool may_go_bare = options_.security == Security::user_data_unprotected && of == Of::user_data;
  link.out.add(FrameKind::message, header, payload, context, lane == Lane::brief || !may_go_bare);
  if (link.stands()) return set_dirty(link);
  open_link(link);
}

Endpoint::Link* Endpoint::link_of(Announced handle) {
  const uint64_t number = handle >> 32;
  if (number >= peers_.size() || peers_[number]->lost) return nullptr;
  Link& link = peers_[number]->link(Lane::bulk);
  return link.bulk.waits() && peers_[number]->announced == static_cast<uint32_t>(handle) ? &link : nullptr;
}

void Endpoint::fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) {
  Link* const link = link_of(handle);
  const bool good = link != nullptr && bytes == link->bulk.announced_bytes();
  if (!good) outcomes_.fetched(context, false);
  if (link == nullptr) return;
  good ? link->bulk.fetch(static_cast<uint8_t*>(buffer), context) : link->bulk.drop();
  if (link != reading_) set_ready(*link);
}

void Endpoint::drop(Announced handle) {
  Link* const link = link_of(handle);
  if (link == nullptr) return;
  link->bulk.drop();
  if (link != reading_) set_ready(*link);
}

bool Endpoint::progress() {
  if (receiver_ == nullptr) return false;
  delivered_ = false;
  constexpr uint32_t kRoundsBetweenLooks = 8;  // while there is something to read anyway
  bool busy = write_links();
  if (ready_.empty() || ++rounds_ % kRoundsBetweenLooks == 0) busy |= poll_events(0);
  busy |= let_all_in();
  busy |= read_links();
  busy |= deliver_to_self();
  busy |= write_links();
  busy |= lose_doomed();
  busy |= outcomes_.report(*receiver_);
  graveyard_.clear();
  return busy || delivered_;
}

bool Endpoint::poll_events(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.get(), events, 64, timeout_ms);
  for (int i = 0; i < count; ++i) static_cast<Watched*>(events[i].data.ptr)->on_events(events[i].events);
  if (std::exchange(ticker_->due, false)) on_tick();  // not before what is told of sockets that it replaces
  return count > 0;
}

bool Endpoint::arm() {
  const auto waits = [](const auto& listener) { return listener->somebody_waits && !listener->no_room; };
  return ready_.empty() && dirty_.empty() && to_self_.empty() && outcomes_.empty() && doomed_.empty() &&
         std::none_of(listeners_.begin(), listeners_.end(), waits);
}

bool Endpoint::deliver_to_self() {
  const auto messages = std::exchange(to_self_, {});
  for (const Message& message : messages) {
    receiver_->on_message(message.header, message.payload);
    if (!message.payload.empty()) outcomes_.sent(message.context, true);
  }
  return !messages.empty();
}

void Endpoint::doom(Peer& peer, const char* why, Ending how) { doomed_.push_back({&peer, why, how}); }

bool Endpoint::lose_doomed() {
  const auto doomed = std::exchange(doomed_, {});
  for (const Doomed& next : doomed) {
    drain(*next.peer);
    if (next.how != Ending::by_break_or_order || !ends_in_order(*next.peer)) lose(*next.peer, next.why, next.how);
  }
  return !doomed.empty();
}

void Endpoint::lose(Peer& peer, const char* why, Ending how) {
  if (peer.lost) return;
  peer.lost = true;
  const bool in_order = peer.link(Lane::brief).said_bye;
  const bool is_news = !in_order && (peer.known || peer.life == 0);
  base::log_write(is_news ? base::LogLevel::warn : base::LogLevel::debug, "peer service %u is lost: %s", peer.number,
                  why);
  for (Link& link : peer.links) {
    bury(std::move(link.attempt));
    if (link.stands()) counting_.end(link.counting);
    link.socket.reset();
    link.readable = false;
    for (const uint64_t context : link.out.give_up()) outcomes_.sent(context, false);
    uint64_t context = 0;
    if (link.bulk.give_up(context)) outcomes_.fetched(context, false);
  }
  if (peer.id == own_.id) {
    for (const Message& message : std::exchange(to_self_, {})) {
      if (!message.payload.empty()) outcomes_.sent(message.context, false);
    }
  }
  if (peer.known) outcomes_.lost(peer.number);
  const bool is_over = how == Ending::for_good || in_order || receiver_ == nullptr || peer.life == kLives;
  if (is_over || peer.places.empty()) return;  // places: who has come by itself comes again
  Peer& next = add_peer(peer.id, static_cast<uint8_t>(peer.life + 1));
  next.places = peer.places;
  open_link(next.link(Lane::brief));
}

bool Endpoint::is_connecting() const { return ticker_->running; }

void Endpoint::start_ticks() {
  if (std::exchange(ticker_->running, true)) return;
  const timespec length{options_.tick_ms / 1000, (options_.tick_ms % 1000) * 1000000L};
  const itimerspec every{length, length};
  timerfd_settime(ticker_->timer.get(), 0, &every, nullptr);
}

void Endpoint::on_tick() {
  uint64_t count = 0;
  if (::read(ticker_->timer.get(), &count, sizeof(count)) != sizeof(count)) return;
  bool pending = tick_guests();
  for (size_t i = 0; i < peers_.size(); ++i) {
    for (Link& link : peers_[i]->links) {
      if (link.attempt == nullptr) continue;
      tick(*link.attempt);
      pending = true;
    }
  }
  for (const auto& listener : listeners_) pending |= std::exchange(listener->no_room, false);
  if (pending) return;
  const itimerspec never{};
  timerfd_settime(ticker_->timer.get(), 0, &never, nullptr);
  ticker_->running = false;
}

// Whoever reads our bye takes first what came before it. What the other kernel has, arrives, also when this process
// is gone; so it is waited for that.
void Endpoint::flush(int timeout_ms) {
  Receiver* const receiver = std::exchange(receiver_, nullptr);  // nothing is delivered here
  const uint64_t end_ns = base::clock_ns() + static_cast<uint64_t>(std::max(timeout_ms, 0)) * 1000000;
  const auto time_is_left = [&] { return base::clock_ns() < end_ns; };
  const auto waits = [](const Link& link) { return !link.out.empty() && !link.ending; };
  const auto any_waits = [&] {
    return std::any_of(peers_.begin(), peers_.end(),
                       [&](const auto& peer) { return std::any_of(peer->links.begin(), peer->links.end(), waits); });
  };
  const auto write_all = [&] {
    for (write_links(); any_waits() && time_is_left(); write_links()) {
      poll_events(1);
      let_all_in();
      lose_doomed();
    }
  };
  write_all();
  for (const auto& peer : peers_) {
    for (Link& link : peer->links) {
      if (!link.stands()) continue;
      link.out.add(FrameKind::bye, {}, {}, 0);
      set_dirty(link);
    }
  }
  write_all();
  while (!all_written() && time_is_left()) poll_events(1);
  graveyard_.clear();
  receiver_ = receiver;
}

}  // namespace offpath::fabric::tcp
