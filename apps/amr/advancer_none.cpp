// SPDX-License-Identifier: BSD-3-Clause
#include "advancer.hpp"

namespace amr {

std::unique_ptr<Advancer> make_tasks(const Options&, std::string& problem) {
  problem = "this program has no tasks (--patches tasks needs them). Run amr_tasks, or give --patches own";
  return nullptr;
}

}  // namespace amr
