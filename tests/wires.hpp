// SPDX-License-Identifier: BSD-3-Clause
// What tests let UCX use: TCP on lo, or in a machine that has RDMA what OFFPATH_TEST_WIRES says, as "rc,self rxe0:1".
#pragma once

#include <cstdlib>
#include <string>

namespace offpath {

inline void set_test_wires() {
  const char* const chosen = getenv("OFFPATH_TEST_WIRES");
  const std::string wires = chosen == nullptr ? "tcp,self lo" : chosen;
  const size_t space = wires.find(' ');
  setenv("OFFPATH_UCX_TLS", wires.substr(0, space).c_str(), 1);
  setenv("OFFPATH_UCX_NET_DEVICES", wires.substr(space + 1).c_str(), 1);
}

}  // namespace offpath
