// SPDX-License-Identifier: BSD-3-Clause
// Who computes the time steps of a rank's patches: the rank itself, or tasks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "options.hpp"
#include "patches.hpp"

namespace amr {

class Advancer {
 public:
  virtual ~Advancer() = default;
  // Memory for patches, as long as this lives.
  virtual double* allocate(std::size_t doubles) = 0;
  // From each patch's state and ghosts its next state and its result. Returns seconds that this has taken on a core.
  virtual double advance(std::vector<Patch>& patches, double time_step) = 0;
  // The rank begins to wait for others, or has waited: meanwhile its cores may do others' work.
  virtual void waits(bool /*begins*/) {}
};

std::unique_ptr<Advancer> make_own(const Options& options);
// What this program was built with. Null, and the problem as one line for the user, where it cannot serve.
std::unique_ptr<Advancer> make_tasks(const Options& options, std::string& problem);

}  // namespace amr
