// SPDX-License-Identifier: BSD-3-Clause
// What joins the nodes of a cluster: the loopback fabric, or sockets of this machine where OFFPATH_TEST_FABRIC is "tcp".
#pragma once

#include "fabric/fabric.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace offpath::testing {

class Network {
 public:
  virtual ~Network() = default;
  virtual std::unique_ptr<fabric::Fabric> make_endpoint() = 0;
  // See LoopbackNetwork.
  virtual void cut(uint32_t index) = 0;
  // The two lose each other, and can connect again. False: not on this network.
  virtual bool disconnect(uint32_t, uint32_t) { return false; }
  // It does nothing any more, and nobody is told.
  virtual void silence() {}
  // Messages under way, as far as it can be known who is to get them.
  virtual size_t in_flight() const = 0;
  // How often to look again after a while when nothing is known to be under way: the system delivers when it likes to.
  // Negative: there is no system in between.
  virtual int patience() const { return -1; }
};

std::unique_ptr<Network> make_network(uint64_t seed);

}  // namespace offpath::testing
