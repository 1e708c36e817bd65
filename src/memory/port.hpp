// SPDX-License-Identifier: BSD-3-Clause
// Port: a client's memory as a service sees it. Addresses are the client's own. An access either succeeds whole or
// fails with OFFPATH_ERR_MEMORY_FAULT (of the target a part may be written then); it cannot crash the service.
//
// Threads: any; workers read each other's clients. No access blocks: what cannot be done at once is done later, and the
// ticket's sink is told. The ports made here answer at once. Adding a kind of port (an agent behind a link, RDMA): one
// file here that implements this interface, and a line to make it.
#pragma once

#include "base/result.hpp"
#include "memory/layout.hpp"

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace offpath::memory {

// Is told how an access ended that a port could not do at once. Called from any thread, never from inside the access.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void put(uint64_t ticket, const base::Status& status) = 0;
};

// Whom to tell, and under which number. The sink must live until it was told.
struct Ticket {
  Sink* sink = nullptr;
  uint64_t number = 0;
};

// How an access ended: done, failed, or later. Of one that ends later the buffer belongs to the port until the ticket's
// sink is told; ranges are the caller's again.
class [[nodiscard]] Outcome {
 public:
  Outcome() = default;
  Outcome(const base::Status& status) : status_(status) {}
  static Outcome later();
  bool is_later() const { return later_; }
  bool ok() const { return !later_ && status_.ok(); }
  const base::Status& status() const { return status_; }  // of one that is not later

 private:
  base::Status status_;
  bool later_ = false;
};

class Port {
 public:
  virtual ~Port() = default;
  virtual Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket = {}) const = 0;
  virtual Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket = {}) const = 0;
  // The same between a contiguous buffer and stretches of the client's memory (offsets are addresses here), in order.
  virtual Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket = {}) const;
  virtual Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket = {}) const;
  // Whether every access ends at once: what is written need not outlive the call then.
  virtual bool prompt() const { return true; }
  // Where this process can use the client's bytes in place; null when it cannot, then read and write.
  virtual uint8_t* view(uint64_t address, size_t bytes) const;
  // The same to read only, where writing needs more than a store.
  virtual const uint8_t* look(uint64_t address, size_t bytes) const { return view(address, bytes); }
  // Where what is to be written there may be made, to be given to write() next: null, anywhere.
  virtual uint8_t* draft(uint64_t address, size_t bytes) const;
  // So many of the bytes are alike: all of them have a view together, or none has. At least one, of any.
  virtual size_t alike(uint64_t address, size_t bytes) const;
  // Whether what was read so far may have been something else than data already (memory/lease.hpp).
  virtual bool is_over() const { return false; }
};

// One whose accesses are of ranges: one stretch is a list of one.
class RangedPort : public Port {
 public:
  Outcome read(void* to, uint64_t address, size_t bytes, Ticket ticket) const override {
    const Range range{static_cast<int64_t>(address), bytes};
    return gather(to, {&range, 1}, ticket);
  }
  Outcome write(uint64_t address, const void* from, size_t bytes, Ticket ticket) const override {
    const Range range{static_cast<int64_t>(address), bytes};
    return scatter({&range, 1}, from, ticket);
  }
  Outcome gather(void* to, std::span<const Range> ranges, Ticket ticket = {}) const override = 0;
  Outcome scatter(std::span<const Range> ranges, const void* from, Ticket ticket = {}) const override = 0;
};

// Cross-memory attach (process_vm_readv/writev): any address of a process of the same user. One copy each way by the
// kernel, 7 GB/s from 256 KiB on; needs the right to ptrace the process (notes in docs/architecture.md).
std::unique_ptr<Port> make_cma(pid_t process);

// Client memory that this process maps too.
struct Region {
  uint64_t address = 0;  // in the client
  uint64_t bytes = 0;
  uint8_t* data = nullptr;              // here
  std::shared_ptr<const void> mapping;  // keeps it there
};

// What lies in the region is used in place, by memcpy or through view(), as is what aliases say lies there, too
// (memory/aliases.hpp; null: nothing does); everything else by `rest` (null: every access to it fails).
class Aliases;
std::unique_ptr<Port> make_mapped(const Region& region, std::unique_ptr<Port> rest,
                                  std::shared_ptr<Aliases> aliases = nullptr);

// A layout made ready for looking up bytes: immutable, shared by all blocks that lie so.
class LayoutIndex;
// Any layout is taken; accesses through one that is no layout (size not the sum, or 0) fail with OFFPATH_ERR_ARGUMENT.
std::shared_ptr<const LayoutIndex> index_layout(const Layout& layout);

// Elements of `layout` from address `base` on, seen as contiguous bytes: address i is byte i of the first element's
// data and so on. Bytes that would lie outside the address space fail with OFFPATH_ERR_MEMORY_FAULT.
std::unique_ptr<Port> make_strided(std::shared_ptr<Port> memory, uint64_t base,
                                   std::shared_ptr<const LayoutIndex> layout);

// The caller's own memory: tests, and clients inside the service's process.
std::unique_ptr<Port> make_direct();

}  // namespace offpath::memory
