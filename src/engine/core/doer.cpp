// SPDX-License-Identifier: BSD-3-Clause
#include "engine/core/doer.hpp"

#include "memory/scratch.hpp"

namespace offpath::engine {
namespace {

class KernelDoer : public Doer {
 public:
  explicit KernelDoer(uint64_t cached_bytes) : pool_(std::make_shared<memory::ScratchPool>(cached_bytes)) {}

  std::shared_ptr<memory::Port> scratch(uint64_t bytes) override { return pool_->take(bytes); }
  void combine(const kernels::Reduction& reduction, const uint8_t* left, const uint8_t* right, uint8_t* result,
               size_t bytes) override {
    kernels::combine(reduction, left, right, result, bytes);
  }

 private:
  const std::shared_ptr<memory::ScratchPool> pool_;
};

}  // namespace

std::unique_ptr<Doer> make_doer(uint64_t cached_bytes) { return std::make_unique<KernelDoer>(cached_bytes); }

}  // namespace offpath::engine
