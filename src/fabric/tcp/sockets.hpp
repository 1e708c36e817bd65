// SPDX-License-Identifier: BSD-3-Clause
// Sockets as this fabric wants them, never blocking; and the addresses of this machine.
#pragma once

#include "base/fd.hpp"
#include "fabric/tcp/address.hpp"

#include <optional>
#include <string>

namespace offpath::fabric::tcp {

// Tests want it otherwise.
struct SocketOptions {
  int send_buffer_bytes = 0;  // 0: what the system decides
  int receive_buffer_bytes = 0;
  int backlog = 1024;
  // Within a minute a side that has nothing under way to a host notices that the host vanished.
  int idle_seconds = 20, probe_seconds = 5, probes = 6;
};

// The addresses of the devices in a list with commas ("eth0,ib0"; a port behind a colon is left out). Empty or "all":
// of all that are up, without the loopback unless there is nothing else. At most kMaxPlaces, ports 0.
base::Result<std::vector<Place>> own_places(const std::string& devices);

// The first of these devices that can multicast; empty: none.
std::string multicast_device(const std::string& devices);

// On a port that is free, which is put into the place.
base::Result<base::Fd> listen_at(Place& place, const SocketOptions& options);
// Invalid: nobody waits, or there is no descriptor for him (errno).
base::Fd accept_from(int listening, const SocketOptions& options);
// Under way; invalid: it cannot be (errno).
base::Fd begin_connect(const Place& place, const SocketOptions& options);
// Once it is writable: 0, or the error.
int connect_error(int socket);
// What the system has counted of it; nothing: it does not say. `under_way`: more may be counted though nothing is sent or read.
struct Counted {
  Connection counts;
  bool under_way;
};
std::optional<Counted> counts_of(int socket);

// As many bytes as there are, at once or not at all: what handshakes say fits into any buffer.
bool send_words(int socket, Bytes words);

}  // namespace offpath::fabric::tcp
