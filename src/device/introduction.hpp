// SPDX-License-Identifier: BSD-3-Clause
// How a client of a starter says who it is and what it wants, and hears the answer: proven by a key that both know
// (connect.hpp), or by MUNGE, which says which user it is. Nobody else reads or changes either.
#pragma once

#include "device/connect.hpp"

#include <optional>
#include <string>

namespace offpath::device {

struct Answered {
  base::Fd socket;
  std::string answer;
};
// The client's part; the key is the one of OFFPATH_DEVICE_KEY_FILE, and without one, or with `none`, it is MUNGE.
base::Result<Answered> introduce(const DeviceEntry& entry, Purpose purpose, const std::string& request, int timeout_ms);

// The starter's part, on an accepted connection.
class Introduction {
 public:
  // `key`: none, who knows it is nobody. `munge`: users that MUNGE names are believed.
  base::Status hear(int socket, const std::optional<Key>& key, bool munge, int timeout_ms);
  Purpose purpose() const { return purpose_; }
  // Not for regions.
  const std::string& request() const { return request_; }
  // Whom MUNGE has named.
  std::optional<uid_t> user() const { return user_; }
  base::Status answer(int socket, const std::string& text) const;

 private:
  Purpose purpose_{};
  Secrets secrets_;
  std::string request_, nonce_;
  std::optional<uid_t> user_;
};

}  // namespace offpath::device
