// SPDX-License-Identifier: BSD-3-Clause
// Finds out by MUNGE which user asks: clusters have it so that one node believes another who a user is. libmunge is
// opened when it is needed; OFFPATH_MUNGE_SOCKET names the socket of another munged than the machine's.
#pragma once

#include "base/result.hpp"

#include <sys/types.h>

#include <string>

namespace offpath::device {

// A text that only processes of `reader` can open, on nodes with the same MUNGE key.
base::Result<std::string> munge_seal(const std::string& text, uid_t reader);

struct Opened {
  std::string text;
  uid_t uid;  // who has sealed it
  gid_t gid;
};
base::Result<Opened> munge_open(const std::string& credential);

}  // namespace offpath::device
