// SPDX-License-Identifier: BSD-3-Clause
// What a one-sided operation does to the target's memory, at once: a short one, or one whose data is there.
#pragma once

#include "ops/onesided/onesided.hpp"
#include "remote/journal.hpp"

namespace offpath::ops::onesided {

class Perform : public graph::Update {
 public:
  // Precondition: `wanted` and `data` were decoded and belong together, it is no lock, and its place, with the first element at
  // `at`, is allowed. The data stays until the end. `journal`, if any: of what is fetched.
  Perform(Wanted wanted, std::span<const uint8_t> data, const std::shared_ptr<memory::Port>& target, uint64_t at,
          remote::Journal* journal = nullptr);
  const uint8_t* apply(const uint8_t* old) override;

 private:
  Wanted wanted_;
  std::span<const uint8_t> data_;
  remote::Journal* const journal_;
  std::vector<uint8_t> space_;
};

}  // namespace offpath::ops::onesided
