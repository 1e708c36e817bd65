// SPDX-License-Identifier: BSD-3-Clause
// Mirror: a client's session segment on the DPU. The service works on it as on a segment; what comes from the host is put
// there, and what the service has written is found by comparing the words that it may be writing with what the host has.
// Behind it, where the client has its shared memory, is memory of this machine, which vector programs work on
// (docs/design/0058-solver-vectors-on-dpus.md).
//
// One thread, of the worker that serves the client; whose link it is, too.
#pragma once

#include "agent/patch.hpp"
#include "base/memfd.hpp"

#include <map>
#include <memory>
#include <set>

namespace offpath::agent {

class Mirror {
 public:
  // The client's shared memory; of what is more than half of this machine's there is none here.
  static base::Result<std::shared_ptr<Mirror>> make(uint64_t shared_address = 0, uint64_t shared_bytes = 0);

  // What the service is given. Once.
  base::Memfd take_memory() { return std::move(memory_); }

  // A submission: errors are those of what is no patch.
  base::Status take(std::span<const uint8_t> body);
  void ask(uint32_t asked);

  // The service has begun what is in that slot: from now on its words are looked at.
  void follow(uint32_t slot);
  // Somebody may be waiting for what the service has written: an operation has ended, a member is lost, an answer.
  bool is_urgent() const;
  // The body of `words`; empty: the service has written nothing since the last time.
  std::vector<uint8_t> collect();

 private:
  explicit Mirror(base::Memfd memory, base::Memfd host);
  session::SegmentHeader& header() const { return *reinterpret_cast<session::SegmentHeader*>(data_); }
  session::Slot& slot(uint32_t index) const;
  void look(uint64_t offset, uint16_t bytes);
  void look_at_slots();
  void forget_done();

  struct Team {
    uint32_t lost = 0;
    uint32_t size = 0;
  };
  struct Open {
    uint32_t offset = 0;
    uint32_t count = 0;
  };

  base::Memfd memory_;
  base::Memfd host_;                      // what the host has, as far as it is compared
  uint8_t* data_;                         // of the memory, which its view keeps
  std::vector<uint32_t> slots_;           // under way
  std::map<uint32_t, Open> open_;         // by slot: its counters
  std::map<uint32_t, uint32_t> results_;  // by slot of a task: where its result will be
  std::map<uint32_t, Team> teams_;        // by offset
  std::set<uint32_t> windows_;            // by offset
  uint32_t events_ = 0;
  std::vector<Word> words_;
};

}  // namespace offpath::agent
