// SPDX-License-Identifier: BSD-3-Clause
// Group: what the members of a team say to all others at once, in chunks. They are lost, overtake each other and come twice, but
// what comes was sent by a member of the group, and not changed. Used by one thread; nothing blocks. Who joins one belongs to
// how: multicast/ (UDP), loopback/ (tests, with faults from a seed). docs/design/0022-multicast.md
#pragma once

#include "fabric/fabric.hpp"

namespace offpath::fabric {

// Whose chunk of what.
struct Label {
  uint64_t task = 0;
  uint32_t chunk = 0;
  uint32_t sender = 0;
  bool operator==(const Label&) const = default;
};
inline constexpr uint64_t kProbe = uint64_t{1} << 63;  // in a task's number: of a probe, which no operation has

class Hearer {
 public:
  virtual ~Hearer() = default;
  // Of another member. The bytes are there during the call, which may push, but not progress.
  virtual void on_chunk(const Label& label, Bytes chunk) = 0;
};

struct GroupCounts {
  uint64_t sent = 0;      // datagrams
  uint64_t received = 0;  // of others, proven
  uint64_t refused = 0;   // of strangers, of other groups, or changed
};

class Group {
 public:
  virtual ~Group() = default;
  virtual size_t chunk_bytes() const = 0;
  // Takes a chunk to be sent; it is copied. Each chunk of a task once at most. False: no room before some have left.
  // Precondition: no longer than chunk_bytes().
  virtual bool push(uint64_t task, uint32_t chunk, Bytes bytes) = 0;
  // Sends what may leave now and delivers what has come, a bounded number. Returns whether anything happened.
  virtual bool progress(uint64_t now_ns, Hearer& hearer) = 0;
  // All that was pushed has left.
  virtual bool idle() const = 0;
  // How long progress() has nothing to send; UINT64_MAX: nothing is there.
  virtual uint64_t wait_ns(uint64_t now_ns) = 0;
  // So long takes what was pushed and what has left, at the rate. 0: nothing is under way, or nobody knows.
  virtual uint64_t busy_ns(uint64_t /*now_ns*/) { return 0; }
  // With all that is around chunks on the wire; 0: unbounded.
  virtual void set_rate(double bytes_per_ns) = 0;
  // How chunks are proven to come from a member: bits, of which all members know the lowest. set_seal: all of them know these.
  virtual uint32_t seals() const { return 1; }
  virtual void set_seals(uint32_t) {}
  // Of the link, in bytes per second; 0: unknown.
  virtual uint64_t link_rate() const { return 0; }
  // Readable when something has come. -1: none, keep polling.
  virtual int event_fd() const = 0;
  virtual const GroupCounts& counts() const = 0;
};

}  // namespace offpath::fabric
