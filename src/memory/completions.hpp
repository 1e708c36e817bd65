// SPDX-License-Identifier: BSD-3-Clause
// Completions: the ends of accesses that ports do later, for a thread that takes them when it has time.
#pragma once

#include "memory/port.hpp"

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

namespace offpath::memory {

class Completions : public Sink {
 public:
  // `wake`: has take() called soon; by any thread.
  explicit Completions(std::function<void()> wake) : wake_(std::move(wake)) {}
  void put(uint64_t ticket, const base::Status& status) override;
  std::vector<std::pair<uint64_t, base::Status>> take();
  bool any();

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<std::pair<uint64_t, base::Status>> ended_;
};

}  // namespace offpath::memory
