// SPDX-License-Identifier: BSD-3-Clause
// What a short one-sided operation does to the target's memory, at once.
#pragma once

#include "ops/onesided/onesided.hpp"

namespace offpath::ops::onesided {

class Perform : public graph::Update {
 public:
  // Precondition: `wanted` and `data` were decoded, it is short and no lock, and its place, with the first element at
  // `at`, is allowed. The data stays until the end.
  Perform(Wanted wanted, std::span<const uint8_t> data, const std::shared_ptr<memory::Port>& target, uint64_t at);
  const uint8_t* apply(const uint8_t* old) override;

 private:
  Wanted wanted_;
  std::span<const uint8_t> data_;
  std::vector<uint8_t> space_;
};

}  // namespace offpath::ops::onesided
