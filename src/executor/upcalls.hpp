// SPDX-License-Identifier: BSD-3-Clause
// Upcalls: those of this executor that are not answered yet. Behind the C functions of device/upcall.h.
#pragma once

#include "executor/endpoint.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace offpath::executor {

class Upcalls : public ReplyTargets {
 public:
  void set_endpoint(Endpoint* endpoint) { endpoint_ = endpoint; }

  // As the functions of device/upcall.h.
  uint64_t post(uint32_t code, std::span<const uint8_t> args, std::span<const offpath_span_t> inputs,
                std::span<const offpath_span_t> outputs);
  bool test(uint64_t id, int32_t& status);
  int32_t wait(uint64_t id);
  bool shares_memory() const { return endpoint_ != nullptr && endpoint_->shares_memory(); }

  // A reply has come; its outputs are in place.
  void answered(uint64_t id, int32_t status);
  std::span<const offpath_span_t> outputs_of(uint64_t upcall) override;

 private:
  struct Call {
    std::atomic<uint32_t> done{0};  // futex
    int32_t status = 0;
    std::vector<offpath_span_t> outputs;  // the region's
    std::vector<void*> staged_outputs;    // where the host wrote them; null: into the region's own
    std::vector<void*> staged;            // all room taken
  };
  enum class Use { input, output };
  uint64_t visible(const offpath_span_t& span, Call& call, Use use);
  std::shared_ptr<Call> find(uint64_t id);
  int32_t finish(uint64_t id, Call& call);

  Endpoint* endpoint_ = nullptr;
  std::mutex mutex_;
  uint64_t next_ = 1;
  std::unordered_map<uint64_t, std::shared_ptr<Call>> calls_;
};

}  // namespace offpath::executor
