// SPDX-License-Identifier: BSD-3-Clause
// Endpoint: the Fabric of one worker. Internal to fabric/tcp. By file:
//   endpoint   what a Fabric does, and the round of progress()
//   links      connections that stand: reading, writing, their end
//   attempts   connections that this side begins
//   doors      connections that others begin
//   groups     multicast beside them
// Events are taken edge-triggered: a link is known to be readable or full until the kernel has said otherwise, so a
// link that waits for a place costs no wake-up and no system call. Nothing is torn down from inside a callback: a
// peer that is to be lost is doomed, and lost at the end of the round. Where only a connection has broken, another peer takes
// its place, with the same id and the next life, and is connected at once: so the other side hears of the loss, too.
#pragma once

#include "base/fd.hpp"
#include "fabric/outcomes.hpp"
#include "fabric/tcp/counting.hpp"
#include "fabric/tcp/incoming.hpp"
#include "fabric/tcp/outgoing.hpp"
#include "fabric/tcp/tcp_fabric.hpp"

#include <sys/epoll.h>

#include <map>

namespace offpath::fabric::tcp {

using seal::Greeting;
using seal::Initiator;
using seal::Responder;
using seal::Verdict;
using seal::Words;

// What epoll knows something by.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void on_events(uint32_t events) = 0;
};

// What happened to connections; for people and tests.
struct Counters {
  uint64_t strangers = 0;  // connections that did not prove the key, or not in time
  uint64_t wrong_frames = 0;
  uint64_t links = 0;  // that stood
};

class Endpoint final : public Fabric {
 public:
  explicit Endpoint(Options options);
  ~Endpoint() override;
  base::Status open();

  void set_receiver(Receiver* receiver) override { receiver_ = receiver; }
  std::vector<uint8_t> address() const override { return own_.encode(); }
  base::Result<fabric::Peer> connect(Bytes address) override;
  std::optional<fabric::Peer> find(Bytes address) const override;
  void give_up(fabric::Peer peer) override;
  void send(fabric::Peer peer, Bytes header, Bytes payload, uint64_t context, Of of = Of::interpreted) override;
  uint64_t backlog(fabric::Peer peer) const override;
  Connection connection(fabric::Peer peer) const override;
  Connection connections() override { return counting_.look(); }
  void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) override;
  void drop(Announced handle) override;
  base::Result<std::shared_ptr<Group>> join(const GroupSpec& spec) override;
  bool progress() override;
  int event_fd() const override { return epoll_.get(); }
  bool arm() override;
  void flush(int timeout_ms) override;

  const Counters& counters() const { return counters_; }
  // Whether something is under way that ends by itself: connections that do not stand yet.
  bool is_connecting() const;

 private:
  class Link;
  class Attempt;
  class Listener;
  class Guest;
  class Ticker;
  class GroupFd;
  class BriefSink;
  class BulkSink;
  struct Peer;
  struct Message {
    std::vector<uint8_t> header;
    Bytes payload;
    uint64_t context;
  };
  enum class Ending : uint8_t {
    for_good,
    by_break,          // of a connection that stood
    by_break_or_order  // in order, if it turns out that it has said bye
  };
  struct Doomed {
    Peer* peer;
    const char* why;
    Ending how;
  };

  // endpoint.cpp
  // In its last life.
  Peer& peer_with(const EndpointId& id);
  Peer& add_peer(const EndpointId& id, uint8_t life);
  Link* link_of(Announced handle);
  void lose(Peer& peer, const char* why, Ending how = Ending::for_good);
  // Lost at the end of the round.
  void doom(Peer& peer, const char* why, Ending how = Ending::for_good);
  bool lose_doomed();
  bool deliver_to_self();
  bool poll_events(int timeout_ms);
  void watch(int fd, Watched& watched, bool known);
  void bury(std::unique_ptr<Watched> watched);
  void start_ticks();
  void on_tick();

  // links.cpp
  void establish(Link& link, base::Fd socket, const seal::Session& session);
  void note_events(Link& link, uint32_t events);
  void set_ready(Link& link);
  void set_dirty(Link& link);
  bool read_links();
  Got read(Link& link);
  void end_link(Link& link);
  bool write_links();
  static bool ends_in_order(const Peer& peer);
  void drain(Peer& peer);
  bool all_written() const;

  // attempts.cpp
  void open_link(Link& link);
  void dial(Attempt& attempt);
  void dial_anew(Attempt& attempt);
  void on_attempt_events(Attempt& attempt, uint32_t events);
  void go_on(Attempt& attempt);
  void judge(Attempt& attempt);
  void tick(Attempt& attempt);

  // doors.cpp
  base::Status open_doors();
  void let_in(Listener& listener);
  bool let_all_in();
  void on_guest_events(Guest& guest);
  void decide(Guest& guest);
  void dismiss(const Guest& guest, const char* why);
  bool tick_guests();

  Options options_;
  EndpointAddress own_;
  Receiver* receiver_ = nullptr;
  base::Fd epoll_;
  std::unique_ptr<Ticker> ticker_;
  std::unique_ptr<GroupFd> group_fd_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<EndpointId, fabric::Peer> by_id_;
  std::map<std::vector<uint8_t>, EndpointId> by_address_;
  std::vector<Link*> ready_;  // there may be something to read
  std::vector<Link*> dirty_;  // there is something to write, and room
  Link* reading_ = nullptr;
  std::vector<Message> to_self_;
  Outcomes outcomes_;
  std::vector<Doomed> doomed_;
  std::vector<std::unique_ptr<Watched>> graveyard_;  // epoll may name them until the end of the round
  std::vector<uint8_t> scratch_;
  std::vector<uint64_t> sent_;
  bool delivered_ = false;
  uint32_t rounds_ = 0;
  Counters counters_;
  Counting counting_;
};

// Of a multicast group, which its owner drains: only wakes who sleeps.
class Endpoint::GroupFd final : public Watched {
 public:
  void on_events(uint32_t) override {}
};

// One of the two connections with a peer; what is to leave on it waits here until it stands.
class Endpoint::Link final : public Watched {
 public:
  Link(Endpoint& endpoint, Peer& peer_of, Lane lane_of) : owner(endpoint), peer(peer_of), lane(lane_of) {}
  void on_events(uint32_t events) override { owner.note_events(*this, events); }
  bool stands() const { return socket.valid(); }

  Endpoint& owner;
  Peer& peer;
  const Lane lane;
  base::Fd socket;
  size_t counting = 0;  // its number there
  std::optional<Sealer> sealer;
  std::optional<Opener> opener;
  Outgoing out;
  BriefIncoming brief;
  BulkIncoming bulk;
  std::unique_ptr<Attempt> attempt;
  bool readable = false, is_ready = false, is_dirty = false;
  bool full = false;      // until the kernel says that there is room
  bool ending = false;    // the kernel says that nothing follows what is there
  bool said_bye = false;  // the other side: all it had to say has come
  bool ended = false;     // and all was read
};

struct Endpoint::Peer {
  Peer(Endpoint& endpoint, fabric::Peer number_of, const EndpointId& id_of, uint8_t life_of)
      : number(number_of),
        id(id_of),
        life(life_of),
        links{Link(endpoint, *this, Lane::brief), Link(endpoint, *this, Lane::bulk)} {}
  Link& link(Lane lane) { return links[static_cast<size_t>(lane)]; }

  const fabric::Peer number;
  const EndpointId id;
  const uint8_t life;
  std::vector<Place> places;
  bool known = false;  // by connect()
  bool lost = false;
  bool given_up = false;   // never again
  uint32_t announced = 0;  // so far
  std::array<Link, kLanes> links;
};

// A connection that this side begins.
class Endpoint::Attempt final : public Watched {
 public:
  enum class Stage {
    connecting,
    proving,
    resting,  // before the places are tried anew
    waiting   // for the other side's connection, which has gone ahead
  };
  explicit Attempt(Link& link_of) : link(link_of) {}
  void on_events(uint32_t events) override { link.owner.on_attempt_events(*this, events); }
  // A place cannot be connected to, by this error of the system.
  void note_failure(int number);

  Link& link;
  base::Fd socket;
  Stage stage = Stage::connecting;
  size_t next_place = 0;
  size_t refusals = 0;  // of this round's places
  int rounds = 0, crossings = 0;
  bool may_help = false;  // to try anew: somebody was there, or there was no descriptor
  int ticks = 0;          // left
  std::optional<Initiator> handshake;
  std::vector<uint8_t> got;
};

// A connection that somebody else has begun.
class Endpoint::Guest final : public Watched {
 public:
  Guest(Endpoint& endpoint, base::Fd fd)
      : owner(endpoint), socket(std::move(fd)), handshake(endpoint.options_.secret, endpoint.own_.id) {}
  void on_events(uint32_t) override { owner.on_guest_events(*this); }

  Endpoint& owner;
  base::Fd socket;
  Responder handshake;
  size_t got = 0;
  std::array<uint8_t, seal::kGreetingBytes> bytes;
  int ticks;
};

class Endpoint::Listener final : public Watched {
 public:
  Listener(Endpoint& endpoint, base::Fd fd) : owner(endpoint), socket(std::move(fd)) {}
  void on_events(uint32_t) override { somebody_waits = true; }
  Endpoint& owner;
  base::Fd socket;
  bool somebody_waits = false;
  bool no_room = false;  // no descriptor: until the next tick
};

// Time, for what has a bound. It counts looks: a service that was stopped meanwhile has lost one tick, not hours.
class Endpoint::Ticker final : public Watched {
 public:
  Ticker(Endpoint& endpoint, base::Fd fd) : owner(endpoint), timer(std::move(fd)) {}
  void on_events(uint32_t) override { due = true; }
  Endpoint& owner;
  base::Fd timer;
  bool running = false, due = false;
};

}  // namespace offpath::fabric::tcp
