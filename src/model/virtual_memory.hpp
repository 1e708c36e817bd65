// SPDX-License-Identifier: BSD-3-Clause
// Memory that is not there: every access succeeds, moves nothing and costs time. For clients of a simulated worker, and
// for partial results.
#pragma once

#include "engine/core/doer.hpp"
#include "model/account.hpp"

#include <span>

namespace offpath::model {

// `shown`: what stands for any bytes that are seen in place, and outlives the port; empty: they are not.
class VirtualPort : public memory::Port {
 public:
  VirtualPort(Account& account, double ns_per_byte, std::span<uint8_t> shown = {})
      : account_(account), ns_per_byte_(ns_per_byte), shown_(shown) {}

  memory::Outcome read(void*, uint64_t, size_t bytes, memory::Ticket) const override { return pay(bytes); }
  memory::Outcome write(uint64_t, const void*, size_t bytes, memory::Ticket) const override { return pay(bytes); }
  uint8_t* view(uint64_t, size_t bytes) const override { return bytes <= shown_.size() ? shown_.data() : nullptr; }

 private:
  memory::Outcome pay(size_t bytes) const {
    account_.charge(static_cast<double>(bytes) * ns_per_byte_);
    return {};
  }

  Account& account_;
  const double ns_per_byte_;
  const std::span<uint8_t> shown_;
};

// Reductions as long as the machine takes for them. Partial results are seen in place, a chunk at a time.
class VirtualDoer : public engine::Doer {
 public:
  VirtualDoer(Account& account, double reduce_ns_per_byte, std::shared_ptr<memory::Port> scratch)
      : account_(account), reduce_ns_per_byte_(reduce_ns_per_byte), scratch_(std::move(scratch)) {}

  std::shared_ptr<memory::Port> scratch(uint64_t) override { return scratch_; }
  void combine(const kernels::Reduction&, const uint8_t*, const uint8_t*, uint8_t*, size_t bytes) override {
    account_.charge(static_cast<double>(bytes) * reduce_ns_per_byte_);
  }

 private:
  Account& account_;
  const double reduce_ns_per_byte_;
  const std::shared_ptr<memory::Port> scratch_;
};

}  // namespace offpath::model
