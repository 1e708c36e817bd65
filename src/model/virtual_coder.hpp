// SPDX-License-Identifier: BSD-3-Clause
// A codec in virtual time: leaves so much of whatever comes, and costs so much. Nothing is read or written.
#pragma once

#include "engine/coding/coder.hpp"
#include "model/account.hpp"
#include "model/machine.hpp"

#include <cmath>

namespace offpath::model {

class VirtualCoder : public engine::Coder {
 public:
  VirtualCoder(Account& account, const Compression& compression) : account_(account), compression_(compression) {}

  uint32_t readable() const override { return codecs::all_codecs(); }
  bool prompt() const override { return true; }
  memory::Outcome encode(engine::CodingJob& job, memory::Ticket) override {
    const auto bytes = static_cast<double>(job.in.size());
    account_.charge(bytes * compression_.encode_ns_per_byte);
    const auto left = static_cast<size_t>(std::ceil(bytes * compression_.left));
    job.bytes = left <= job.out.size() ? left : 0;
    job.check = 0;
    return {};
  }
  memory::Outcome decode(engine::CodingJob& job, memory::Ticket) override {
    account_.charge(static_cast<double>(job.out.size()) * compression_.decode_ns_per_byte);
    job.check = 0;
    return {};
  }

 private:
  Account& account_;
  const Compression& compression_;
};

}  // namespace offpath::model
