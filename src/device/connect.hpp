// SPDX-License-Identifier: BSD-3-Clause
// Ways to an executor. Local: the node's device service hands the connection on to an executor. Remote: a TCP
// connection on which both sides first prove that they know the key: version and a random challenge each way, then
// keyed hashes of both (HMAC-SHA512-256), all of fixed length and within a time limit. The stream itself is not
// encrypted, but for messages that are sealed.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "device/device_list.hpp"

#include <array>
#include <string>

namespace offpath::device {

using Key = std::array<uint8_t, 32>;

// What a client wants of who listens: its magic number is the first that it says, and part of what both prove.
enum class Purpose : uint32_t {
  regions = 0x4850464fU,  // "OFPH": an executor
  service = 0x5350464fU,  // "OFPS": its job's service (starter.hpp)
  probe = 0x5050464fU,    // "OFPP": what this machine and the way to it are like (probe.hpp)
};

// Made by both sides of one connection alone: what is sealed with it nobody else reads or changes.
struct Secrets {
  Key of_client{}, of_server{};
};

// Any file of at least 16 bytes that only its owner can read (others could run code on the DPU).
base::Result<Key> read_key(const std::string& path);
// A connection and no word on it yet.
base::Result<base::Fd> dial(const DeviceEntry& entry, int timeout_ms);
// Connects and proves; blocks for at most timeout_ms.
base::Result<base::Fd> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms,
                                      Purpose purpose = Purpose::regions, Secrets* secrets = nullptr);
// The service's side of the same on an accepted connection.
base::Status accept_remote(int socket, const Key& key, int timeout_ms, Purpose* purpose = nullptr,
                           Secrets* secrets = nullptr);

// One message each way, each sealed with its sender's secret.
base::Status send_sealed(int socket, const std::string& text, const Key& secret);
base::Result<std::string> receive_sealed(int socket, const Key& secret, int timeout_ms);

}  // namespace offpath::device
