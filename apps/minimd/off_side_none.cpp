// SPDX-License-Identifier: BSD-3-Clause
#include "off_side.hpp"

namespace minimd {

std::unique_ptr<OffSide> make_off_side(const Domain&, const Cells&, const Options& options, std::string& problem) {
  problem = std::string("--schedule ") + kSchedules[int(options.schedule)] +
            " needs another side (this program was built without one). Use minimd_openmp, or --schedule relaxed";
  return nullptr;
}

const char* off_side_kind() { return "none"; }

}  // namespace minimd
