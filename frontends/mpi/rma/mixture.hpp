// SPDX-License-Identifier: BSD-3-Clause
// The native way of an offloaded window. Puts and gets of this process may go natively, each by a decision of this
// process alone (docs/design/0018-windows-by-operation.md); what is atomic, and then all of the window, by an agreement
// of all members (docs/design/0023-atomics-of-windows.md).
//
// States: the native epoch is closed until the first operation that goes natively, then open until close(). Where the
// library refuses it, everything goes to the service.
// Threads: one at a time. No program that calls MPI from several at once has one.
#pragma once

#include "policy/onesided.hpp"
#include "policy/window_chooser.hpp"

#include <mpi.h>

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace offpath::mpi {

// Who decides the way of an operation. alternate: one goes this way and the next that way, for tests.
enum class Ways : uint8_t { dpu, host, alternate, measured };
// Words of OFFPATH_MPI_WINDOWS; "auto" is measured. Others: `otherwise`.
Ways parse_ways(std::string_view word, Ways otherwise);

class Mixture {
 public:
  static constexpr int kEverybody = std::numeric_limits<int>::min();  // no MPI constant

  // `places`: by member. `alike`: all members have one with the same `ways`.
  Mixture(MPI_Win win, std::vector<policy::Place> places, Ways ways, bool alike);
  Mixture(const Mixture&) = delete;
  Mixture& operator=(const Mixture&) = delete;
  // Whether what is done on the native window is seen in the same memory as what the service does, and right: MPICH 4.0
  // gets wrong values where several threads call at once.
  static bool possible(MPI_Win win);
  // Ends the native epoch: all members are about to free the window. Inside.
  void close();

  // The call that posts an operation: one that may go either way, or another; then its end.
  bool goes_natively(policy::Onesided kind, int target, uint64_t bytes);
  // Something atomic. `plain`: contiguous; not all libraries get other things right.
  bool atomic_goes_natively(policy::Onesided kind, int target, uint64_t bytes, bool plain);
  void add_other(policy::Onesided kind, int target, uint64_t bytes);
  void posted();

  // Contiguous data. `displacement` counts in the target's units. Error code of the library. Inside.
  int put(const void* from, uint64_t bytes, int target, int64_t displacement);
  int get(void* to, uint64_t bytes, int target, int64_t displacement);
  // An operation that the caller posts natively.
  void count(int target, uint64_t bytes);
  // Nothing of either way awaits a call that completes.
  bool idle() const { return pending_.empty() && chooser_.idle() && whole_.idle() && !whole_.atomics_pending(); }
  // Until what went natively to that target, or to kEverybody, is done there and here.
  int flush(int target);
  // A call that completes has waited since `entered_ns`; `served`: nothing is under way at the service.
  void completed(uint64_t entered_ns, bool served);

  // A call in which all members wait for each other: whether they agree in it, alike on all of them; then this member's
  // vote, and the sum of all. `able`: this member could change.
  bool meets() { return whole_.meets(); }
  policy::WindowChooser::Vote vote(bool able);
  void agree(const policy::WindowChooser::Vote& sum) { whole_.agree(sum); }

  uint64_t operations() const { return operations_; }
  uint64_t bytes() const { return bytes_; }

 private:
  enum class Epoch : uint8_t { closed, open, refused };

  bool open();
  policy::Place place_of(int target) const { return places_[static_cast<size_t>(target)]; }

  const MPI_Win win_;
  const std::vector<policy::Place> places_;
  const Ways ways_;
  Epoch epoch_ = Epoch::closed;
  bool last_natively_ = false;
  policy::OnesidedChooser chooser_;  // while `whole_` says: by operation
  std::vector<bool> is_pending_;     // by target: something that no flush has ended
  std::vector<int> pending_;         // those targets
  bool barred_ = false;              // something was asked for that not all libraries get right
  policy::WindowChooser whole_;
  uint64_t operations_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace offpath::mpi
