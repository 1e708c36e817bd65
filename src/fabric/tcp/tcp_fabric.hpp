// SPDX-License-Identifier: BSD-3-Clause
// The TCP fabric: services on plain IP networks, proven to each other by the job's key (docs/design/0016-fabric-tcp.md).
// Long payloads of one peer are announced one after the other; one that is not fetched keeps those behind it.
#pragma once

#include "fabric/fabric.hpp"
#include "fabric/tcp/frame.hpp"
#include "fabric/tcp/sockets.hpp"
#include "seal/handshake.hpp"

#include <memory>

namespace offpath::fabric {

namespace tcp {

// OFFPATH_FABRIC_SECURITY and OFFPATH_UCX_NET_DEVICES; the rest is for tests.
struct Options {
  seal::Secret secret{};
  seal::Security security = seal::Security::auth;
  std::string devices;
  SocketOptions sockets;
  int tick_ms = 500;                 // patience is counted in ticks
  size_t brief_bytes = kBriefBytes;  // longest payload on the brief lane; at most that
  size_t max_strangers = 256;
};

std::unique_ptr<Context> make_context(Options options);

}  // namespace tcp

base::Result<std::unique_ptr<Context>> open_tcp(const JobKey& key);
// On these devices instead of those of OFFPATH_UCX_NET_DEVICES.
base::Result<std::unique_ptr<Context>> open_tcp_on(const JobKey& key, const std::string& devices);

}  // namespace offpath::fabric
