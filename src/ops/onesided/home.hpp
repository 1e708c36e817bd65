// SPDX-License-Identifier: BSD-3-Clause
// A member's part of a window once its own process serves it, as a service is lost (docs/design/0044-recovery.md, Windows).
// It begins where the service has stopped: what that had done is known from its journal, so nothing atomic is done twice, and
// who holds locks from the holders themselves. Pure.
//
// Threads: one at a time.
#pragma once

#include "ops/onesided/locks.hpp"
#include "ops/onesided/regions.hpp"
#include "remote/journal.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace offpath::ops::onesided {

class Home {
 public:
  // `memory`: of this process. `dynamic`: offsets are addresses.
  Home(uint32_t members, bool dynamic, uint64_t base, std::shared_ptr<memory::Port> memory);

  // Memory of the window; a window that is not dynamic has its own by one attach(base, bytes). False: as Regions.
  bool attach(uint64_t base, uint64_t bytes) { return regions_.add(base, bytes); }
  bool detach(uint64_t base) {
    return regions_.remove(base, [] {});
  }

  // The service has let go: takes over from its journal, and completes what that was at. Once, before perform(). Empty: it has
  // kept none.
  void take_over(std::span<uint8_t> journal);

  // Carries out an operation that is no lock. `body`: a Wanted (remote/wanted.hpp) without its data, `data`: what it
  // sends, whatever the length. `may_be_done`: the origin has asked the service for it before. Of one origin, atomics in
  // the order of their numbers. Errors: those of the service; OFFPATH_ERR_SERVICE_LOST: nobody knows whether it was done.
  struct Outcome {
    base::Status status;
    std::vector<uint8_t> fetched;
  };
  Outcome perform(uint32_t from, std::span<const uint8_t> body, std::span<const uint8_t> data, bool may_be_done);

  // What a member holds of this part when it turns from the services, once each. Nobody is granted anything before all
  // have said it.
  enum class Held : uint8_t { nothing, shared, exclusive };
  void note_held(uint32_t from, Held held);
  // An error: it holds it already, or does not hold it.
  base::Status lock(uint32_t from, bool exclusive);
  base::Status unlock(uint32_t from);
  // Its process is lost.
  void forget(uint32_t from);
  // Members whose lock() is granted now, each once. After each of the calls above.
  std::vector<uint32_t> grant();

 private:
  const uint64_t base_;
  const std::shared_ptr<memory::Port> memory_;
  Regions regions_;
  Locks locks_;
  std::vector<bool> has_told_;  // by member
  size_t told_count_ = 0;
  struct Asked {
    uint32_t from;
    bool exclusive;
  };
  std::vector<Asked> asked_;  // for a lock, and not decided yet
  std::optional<remote::History> history_;
};

}  // namespace offpath::ops::onesided
