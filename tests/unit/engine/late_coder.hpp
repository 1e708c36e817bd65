// SPDX-License-Identifier: BSD-3-Clause
// A coder that does each chunk in a later round, in any order, as an engine of a DPU would.
#pragma once

#include "engine/coding/coder.hpp"

#include <functional>
#include <random>
#include <vector>

namespace offpath::testing {

class LateCoder : public engine::Coder {
 public:
  explicit LateCoder(uint64_t seed, uint32_t readable = codecs::all_codecs()) : random_(seed), readable_(readable) {}
  uint32_t readable() const override { return readable_; }
  bool prompt() const override { return false; }
  memory::Outcome encode(engine::CodingJob& job, memory::Ticket ticket) override {
    waiting_.push_back([this, &job, ticket] { ticket.sink->put(ticket.number, software_->encode(job, {}).status()); });
    return memory::Outcome::later();
  }
  memory::Outcome decode(engine::CodingJob& job, memory::Ticket ticket) override {
    waiting_.push_back([this, &job, ticket] { ticket.sink->put(ticket.number, software_->decode(job, {}).status()); });
    return memory::Outcome::later();
  }
  // Does one of what is to be done. False: there was nothing.
  bool step() {
    if (waiting_.empty()) return false;
    std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
    const auto next = std::move(waiting_.back());
    waiting_.pop_back();
    next();
    return true;
  }

 private:
  std::mt19937_64 random_;
  const uint32_t readable_;
  const std::unique_ptr<engine::Coder> software_ = engine::make_coder();
  std::vector<std::function<void()>> waiting_;
};

}  // namespace offpath::testing
