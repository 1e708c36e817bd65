// SPDX-License-Identifier: BSD-3-Clause
#include "memory/completions.hpp"

namespace offpath::memory {

void Completions::put(uint64_t ticket, const base::Status& status) {
  bool first;
  {
    std::lock_guard lock(mutex_);
    first = ended_.empty();
    ended_.emplace_back(ticket, status);
  }
  if (first) wake_();
}

std::vector<std::pair<uint64_t, base::Status>> Completions::take() {
  std::lock_guard lock(mutex_);
  return std::exchange(ended_, {});
}

bool Completions::any() {
  std::lock_guard lock(mutex_);
  return !ended_.empty();
}

}  // namespace offpath::memory
