// SPDX-License-Identifier: BSD-3-Clause
// Ways to an executor. Local: the node's device service hands the connection on to an executor. Remote: a TCP
// connection on which both sides first prove that they know the key: version and a random challenge each way, then
// keyed hashes of both (HMAC-SHA512-256), all of fixed length and within a time limit. The stream itself is not
// encrypted.
#pragma once

#include "base/fd.hpp"
#include "base/result.hpp"
#include "device/device_list.hpp"

#include <array>
#include <string>

namespace offpath::device {

using Key = std::array<uint8_t, 32>;

// Any file of at least 16 bytes that only its owner can read (others could run code on the DPU).
base::Result<Key> read_key(const std::string& path);
// Connects and proves; blocks for at most timeout_ms.
base::Result<base::Fd> connect_remote(const DeviceEntry& entry, const Key& key, int timeout_ms);
// The service's side of the same on an accepted connection.
base::Status accept_remote(int socket, const Key& key, int timeout_ms);

}  // namespace offpath::device
