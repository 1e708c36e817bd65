// SPDX-License-Identifier: BSD-3-Clause
// The round trip of a way between two machines, by TCP and with sleepers at both ends: what a task over the same way is compared with.
#pragma once

#include <string>

namespace bench {

// Answers one connection at that port, until it is closed. The process's exit status.
int serve_pings(int port);

class Ping {
 public:
  ~Ping();
  // HOST:PORT. Whether somebody answers there.
  bool open(const std::string& where);
  // A message there and back, in microseconds; negative: nobody answers any more.
  double once() const;

 private:
  int socket_ = -1;
};

}  // namespace bench
