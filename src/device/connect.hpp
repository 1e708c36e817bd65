// SPDX-License-Identifier: BSD-3-Clause
// Ways to an executor. Local: the node's device service hands the connection on to an executor. Remote: a TCP
// connection on which both sides first prove that they know the key (seal/handshake.hpp); all that follows is sealed.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "device/device_list.hpp"
#include "device/line.hpp"

#include <string>

namespace offpath::device {

using Key = seal::Key;

// What a client wants of who listens: the wish of its greeting.
enum class Purpose : uint8_t {
  regions = 16,  // an executor
  service = 17,  // its job's service (starter.hpp)
  probe = 18,    // what this machine and the way to it are like (probe.hpp)
};
// Regions are protected as OFFPATH_FABRIC_SECURITY says, but never less than authenticated; what else is said holds
// secrets, and is hidden.
seal::Security security_for(Purpose purpose, seal::Security wanted);

// Any file of at least 16 bytes that only its owner can read (others could run code on the DPU).
base::Result<Key> read_key(const std::string& path);
// A connection and no word on it yet.
base::Result<base::Fd> dial(const DeviceEntry& entry, int timeout_ms);
// Connects and proves; blocks for at most timeout_ms with each answer.
base::Result<Connection> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms,
                                        Purpose purpose = Purpose::regions);

// One message: its length and its text.
base::Status send_text(const Line& line, const std::string& text);
base::Result<std::string> receive_text(const Line& line, size_t most_bytes, int timeout_ms);

}  // namespace offpath::device
