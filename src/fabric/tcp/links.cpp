// SPDX-License-Identifier: BSD-3-Clause
#include "fabric/tcp/endpoint.hpp"

#include "base/log.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <algorithm>

namespace offpath::fabric::tcp {

class Endpoint::BriefSink final : public BriefIncoming::Sink {
 public:
  explicit BriefSink(Link& link) : link_(link) {}
  void on_frame(const Frame& frame, Bytes payload) override {
    if (frame.kind == FrameKind::bye) {
      link_.said_bye = true;
      return;
    }
    link_.owner.delivered_ = true;
    link_.owner.receiver_->on_message(frame.header_view(), payload);
  }

 private:
  Link& link_;
};

class Endpoint::BulkSink final : public BulkIncoming::Sink {
 public:
  explicit BulkSink(Link& link) : link_(link) {}
  void on_announced(const Frame& frame) override {
    link_.owner.delivered_ = true;
    const Announced handle = static_cast<uint64_t>(link_.peer.number) << 32 | ++link_.peer.announced;
    link_.owner.receiver_->on_announced(frame.header_view(), frame.payload_bytes, handle);
  }
  void on_fetched(uint64_t context, bool success) override { link_.owner.outcomes_.fetched(context, success); }
  void on_bye() override { link_.said_bye = true; }

 private:
  Link& link_;
};

void Endpoint::establish(Link& link, base::Fd socket, const seal::Session& session) {
  ++counters_.links;
  bury(std::move(link.attempt));
  link.socket = std::move(socket);
  link.counting = counting_.begin(link.socket.get());
  link.sealer.emplace(session.out, session.suite, options_.security);
  link.opener.emplace(session.in, session.suite, options_.security);
  watch(link.socket.get(), link, true);
  set_dirty(link);
}

void Endpoint::note_events(Link& link, uint32_t events) {
  if (!link.stands()) return;
  if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) link.ending = true;
  if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) {
    link.readable = true;
    set_ready(link);
  }
  if ((events & EPOLLOUT) != 0 && std::exchange(link.full, false)) set_dirty(link);
  // While the lane of long blocks waits for a place nothing reads it, so no read would find that it broke.
  const bool dead = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (dead && link.lane == Lane::bulk && link.bulk.waits())
    doom(link.peer, "its connection broke", Ending::by_break_or_order);
}

void Endpoint::set_ready(Link& link) {
  if (!link.stands() || !link.readable || link.bulk.waits() || std::exchange(link.is_ready, true)) return;
  ready_.push_back(&link);
}

void Endpoint::set_dirty(Link& link) {
  if (!link.stands() || link.full || link.out.empty() || std::exchange(link.is_dirty, true)) return;
  dirty_.push_back(&link);
}

bool Endpoint::read_links() {
  bool busy = false;
  for (Link* const link : std::exchange(ready_, {})) {
    link->is_ready = false;
    if (!link->stands() || !link->readable) continue;
    counting_.note_moved(link->counting);
    switch (read(*link)) {
      case Got::all:
      case Got::pause:
        break;
      case Got::more:
        busy = true;
        set_ready(*link);
        break;
      case Got::end:
      case Got::broken:
        busy = true;
        end_link(*link);
        break;
      case Got::wrong:
        busy = true;
        ++counters_.wrong_frames;
        lose(link->peer, "it sent a frame that is wrong", Ending::by_break);
        break;
    }
  }
  return busy;
}

Got Endpoint::read(Link& link) {
  reading_ = &link;
  Got got = Got::all;
  if (link.lane == Lane::brief) {
    BriefSink sink(link);
    got = link.brief.read(link.socket.get(), link.ending, *link.opener, scratch_, sink);
  } else {
    BulkSink sink(link);
    got = link.bulk.read(link.socket.get(), link.ending, *link.opener, sink);
  }
  reading_ = nullptr;
  if (got == Got::all) link.readable = false;
  return got;
}

// A peer that has said bye is lost when its other connection was read to the end, too. Without a bye nothing is
// promised.
void Endpoint::end_link(Link& link) {
  link.ended = true;
  link.readable = false;
  if (!link.said_bye) return doom(link.peer, "the connection has ended", Ending::by_break);
  if (!ends_in_order(link.peer)) lose(link.peer, "it has said bye");
}

// Whether the peer has said bye and one of its connections is still to be read to the end.
bool Endpoint::ends_in_order(const Peer& peer) {
  const auto is_open = [](const Link& link) { return link.stands() && !link.ended; };
  const auto has_said_bye = [](const Link& link) { return link.said_bye; };
  return std::any_of(peer.links.begin(), peer.links.end(), is_open) &&
         std::any_of(peer.links.begin(), peer.links.end(), has_said_bye);
}

// Delivers the short messages that have come.
void Endpoint::drain(Peer& peer) {
  Link& link = peer.link(Lane::brief);
  if (receiver_ == nullptr || peer.lost || !link.stands() || link.ended) return;
  link.ending = true;          // so read() asks until nothing is left
  constexpr int kReads = 100;  // what a socket can hold
  Got got = Got::more;
  for (int i = 0; i < kReads && got == Got::more; ++i) got = read(link);
  link.ended = got != Got::all && got != Got::more;
  link.readable = got == Got::more;
  set_ready(link);
}

bool Endpoint::write_links() {
  bool any = false;
  for (Link* const link : std::exchange(dirty_, {})) {
    link->is_dirty = false;
    if (!link->stands() || link->full) continue;
    any = true;
    counting_.note_moved(link->counting);
    const auto progress = link->out.write(link->socket.get(), *link->sealer, sent_);
    link->full = progress != Outgoing::Progress::empty;
    if (progress != Outgoing::Progress::broken) continue;
    // What the peer said before its end is read first; that finds the end, but not where the link waits for a place.
    link->readable = link->ending = true;
    set_ready(*link);
    if (link->lane == Lane::bulk) doom(link->peer, "its connection broke", Ending::by_break_or_order);
  }
  for (const uint64_t context : sent_) outcomes_.sent(context, true);
  sent_.clear();
  return any;
}

// Bytes that the other side's kernel has not acknowledged, and those that wait here.
uint64_t Endpoint::backlog(fabric::Peer number) const {
  uint64_t bytes = 0;
  for (const Link& link : peers_[number]->links) {
    int unacknowledged = 0;
    const bool known = link.stands() && ioctl(link.socket.get(), SIOCOUTQ, &unacknowledged) == 0;
    bytes += link.out.bytes() + (known ? static_cast<uint64_t>(unacknowledged) : 0);
  }
  return bytes;
}

Connection Endpoint::connection(fabric::Peer number) const {
  Connection sum;
  for (const Link& link : peers_[number]->links) {
    if (!link.stands()) continue;
    ++sum.count;
    if (const auto counted = counts_of(link.socket.get())) add_counts(counted->counts, {}, sum);
  }
  return sum;
}

// Whether all bytes have come to the other side's kernel. A connection that ends takes no more: nobody closes half of
// one.
bool Endpoint::all_written() const {
  for (const auto& peer : peers_) {
    for (const Link& link : peer->links) {
      int left = 0;
      if (link.stands() && !link.ending && ioctl(link.socket.get(), SIOCOUTQ, &left) == 0 && left > 0) return false;
    }
  }
  return true;
}

}  // namespace offpath::fabric::tcp
