// SPDX-License-Identifier: BSD-3-Clause
// Who computes forces next to the host: another part of this process, target regions on a DPU, or tasks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "domain.hpp"
#include "force.hpp"
#include "options.hpp"
#include "structure.hpp"

namespace minimd {

// Seconds on the other side, summed up.
struct OffTimes {
  double in = 0, force = 0, replay = 0, out = 0;  // positions in; halo, forces and reverse; order; forces out
  double share = 0;                               // a share of an ordinary step, all of it
  double ship = 0;                                // lists
  double bytes = 0;                               // of lists
  int alls = 0, shares = 0, ships = 0;
};

// One rank's. What is begun is finished before anything else is begun, but for lists on their way.
class OffSide {
 public:
  virtual ~OffSide() = default;
  // These lists serve from now on. They must not change until the next call of accept(), or of settle().
  virtual void accept(const Structure& structure) = 0;
  virtual bool arrived() = 0;  // at once
  virtual void settle() = 0;   // waits until they have arrived

  // All forces by the lists, among the other sides of all ranks. x: `local` own atoms, as the lists have them, and not
  // needed after this call. The forces come in the order, and for the atoms, that a rebuild at these positions has.
  virtual void begin_all(const std::vector<double>& x, int local, bool with_sums) = 0;
  virtual Sums finish_all(std::vector<double>& f) = 0;

  // What atoms from `begin` on and their neighbours do to each other, added to f. x: own atoms and ghosts; not changed
  // until it is finished.
  virtual void begin_share(const std::vector<double>& x, int begin, bool with_sums) = 0;
  virtual Sums finish_share(std::vector<double>& f) = 0;

  virtual OffTimes times() const = 0;
  virtual void clear_times() = 0;
};

// In this process, one after the other: what the schedule does to the results, without any offloading.
std::unique_ptr<OffSide> make_same_side(const Domain& domain, const Cells& cells);

// What this program was built with. Null, and the problem as one line for the user, where it cannot serve.
std::unique_ptr<OffSide> make_off_side(const Domain& domain, const Cells& cells, const Options& options,
                                       std::string& problem);
// One word: none, openmp, tasks.
const char* off_side_kind();

}  // namespace minimd
