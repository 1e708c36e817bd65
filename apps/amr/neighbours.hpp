// SPDX-License-Identifier: BSD-3-Clause
// Patches give their neighbours what those need, in this rank and between ranks: one message for each pair of ranks.
#pragma once

#include <functional>
#include <vector>

#include "patches.hpp"

namespace amr {

class Neighbours {
 public:
  Neighbours(const Grid& grid, Patches& patches, int rank) : grid_(grid), patches_(patches), rank_(rank) { plan(); }

  // Levels have changed.
  void plan();
  // On all ranks: ghosts of all patches; corrects what coarse patches have exchanged with finer ones (ratio: time step * cells of
  // a patch's side, of level 0 as of any).
  void fill_ghosts();
  void correct_fluxes(double time_step);

 private:
  struct Gift {
    int from, to;  // patches
    int dx, dy;    // where `to` sees `from`
    std::size_t count;
  };
  struct Mail {
    std::vector<Gift> gifts;
    std::vector<double> values;
  };
  struct Plan {
    std::vector<Gift> own;
    std::vector<Mail> out, in;  // by rank
  };
  using Take = std::function<void(const Gift&, double*)>;
  using Put = std::function<void(const Gift&, const double*)>;
  static void add(Plan& plan, const Grid& grid, int rank, const Gift& gift);
  void exchange(Plan& plan, const Take& take, const Put& put);

  const Grid& grid_;
  Patches& patches_;
  const int rank_;
  Plan ghosts_, fluxes_;
  std::vector<double> buffer_;
};

}  // namespace amr
