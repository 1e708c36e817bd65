// SPDX-License-Identifier: BSD-3-Clause
#include "multiplier.hpp"

namespace bspmm {

std::unique_ptr<Multiplier> make_tasks(int, std::string& problem) {
  problem = "this program has no tasks (--products tasks needs them). Run bspmm_tasks, or give --products own";
  return nullptr;
}

}  // namespace bspmm
