// SPDX-License-Identifier: BSD-3-Clause
// Fabric: how the workers of services reach each other. One Fabric per worker, used by that worker's thread alone.
//
// A message is a small header (at most kMaxHeaderBytes) and an optional payload. Without a header it is from the other end's fabric to
// this one, and whoever gets it drops it. Messages between two workers that
// are sent through one connection arrive, but payload-carrying ones may be overtaken by later ones: whoever needs an
// order carries it in the header. Nothing is delivered outside progress(), and a Receiver may call any function of
// the Fabric from inside its callbacks except progress().
//
// Two ways a payload can arrive: `eager`, its bytes are there during on_message; or `announced`, then the receiver
// names the buffer with fetch(), now or later: that is what bounds its memory. A payload that is neither fetched nor
// dropped may keep others of its peer from being announced, but no short messages.
//
// Peers are never removed. After on_peer_lost no message from that peer is delivered, and sends to it complete with
// failure. Connecting to the same address again gives the same, lost, peer; or another one, where only the connection has ended
// and the fabric makes a new one. Nothing is sent again.
//
// Adding a fabric: one folder that implements both classes and passes tests/unit/fabric, one line in fabrics.def.
#pragma once

#include "base/result.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace offpath::fabric {

using Bytes = std::span<const uint8_t>;
using Peer = uint32_t;
using Announced = uint64_t;

inline constexpr size_t kMaxHeaderBytes = 96;
// Payloads up to this length leave together, and are never announced.
inline constexpr size_t kShortBytes = 8 << 10;

// What a payload is. Users may choose to have their data unprotected; what somebody acts upon is authenticated always:
// lengths, addresses, and what code reads as such.
enum class Of : uint8_t { interpreted, user_data };

// What all services of a job know and nobody else: its token. A service serves one job, so there is one.
using JobKey = std::array<uint8_t, 32>;

class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void on_message(Bytes header, Bytes payload) = 0;
  // Answer with fetch() or drop(), now or later.
  virtual void on_announced(Bytes header, size_t payload_bytes, Announced handle) = 0;
  virtual void on_fetched(uint64_t context, bool success) = 0;
  // The payload of a send is the caller's again. Not called for sends without payload.
  virtual void on_sent(uint64_t context, bool success) = 0;
  virtual void on_peer_lost(Peer peer) = 0;
};

class Group;

// What a member of a team says to join the team's multicast group (group.hpp).
struct GroupSpec {
  std::array<uint8_t, 16> team{};
  uint32_t own = 0, members = 0;  // nodes
  size_t chunk_bytes = 0;         // 0: as long as the network allows
};

// What the system has counted of the connections with a peer, so far; all 0 where it is not known.
struct Connection {
  uint64_t count = 0;
  uint64_t sent = 0;        // segments with data
  uint64_t resent = 0;      // of these, anew
  uint64_t disordered = 0;  // segments that came behind a gap
  uint64_t busy_us = 0;     // time with something to send; of that
  uint64_t room_us = 0;     // the other side had no room
  uint64_t round_us = 0;    // a round trip with data, smoothed
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  virtual void set_receiver(Receiver* receiver) = 0;
  virtual std::vector<uint8_t> address() const = 0;
  // The same address gives the same peer. Connecting happens in the background.
  virtual base::Result<Peer> connect(Bytes address) = 0;
  // The peer that connect() has given for that address.
  virtual std::optional<Peer> find(Bytes address) const = 0;
  // It is lost from now on, for good, and reported so by progress(). Not from inside a callback.
  virtual void give_up(Peer peer) = 0;
  // The header is copied; the payload must stay until on_sent(context). Never blocks.
  virtual void send(Peer peer, Bytes header, Bytes payload, uint64_t context, Of of = Of::interpreted) = 0;
  // Of what was sent to it, so many bytes have not come to its side yet, as far as is known here.
  virtual uint64_t backlog(Peer peer) const = 0;
  // System calls: for now and then.
  virtual Connection connection(Peer) const { return {}; }
  // The sum over all peers, lost ones too; of round trips the longest. Of many that move a call looks at some: what others have
  // counted since follows with the next calls.
  virtual Connection connections() { return {}; }
  virtual void fetch(Announced handle, void* buffer, size_t bytes, uint64_t context) = 0;
  virtual void drop(Announced handle) = 0;
  // The group is drained by its owner, and event_fd() is readable when something has come for it, too. Fails where the
  // fabric, or the network, has no multicast.
  virtual base::Result<std::shared_ptr<Group>> join(const GroupSpec&) {
    return base::Status::error(OFFPATH_ERR_NO_SERVICE, "this fabric has no multicast");
  }
  // Delivers what has come. Returns whether anything happened.
  virtual bool progress() = 0;
  // Readable when progress() has something to do, once arm() returned true after it. -1: none, keep polling.
  virtual int event_fd() const = 0;
  virtual bool arm() = 0;
  // Sends what is queued, for at most timeout_ms; for the end of a service.
  virtual void flush(int timeout_ms) = 0;
};

// What a process has once of a fabric; must outlive its endpoints, which may be used by different threads.
class Context {
 public:
  virtual ~Context() = default;
  virtual base::Result<std::unique_ptr<Fabric>> make_endpoint() = 0;
};

}  // namespace offpath::fabric
