// SPDX-License-Identifier: BSD-3-Clause
// Products as tasks of Offpath's C API. What is got, multiplied and added lies in memory that the service shares, so a task works
// where it lies.
#include "../multiplier.hpp"

#include <utility>

#include "../../task_session/session.hpp"
#include "multiply.hpp"

namespace bspmm {
namespace {

using task_session::Session;

class Tasks : public Multiplier {
 public:
  Tasks(int tile, Session session) : tile_(tile), session_(std::move(session)) {}

  double* allocate(std::size_t elements) override {
    return static_cast<double*>(session_.allocate(elements * sizeof(double)));
  }
  // What was there before the first product is not looked at: such a task may be begun again after a loss.
  void begin(const double* a, const double* b, double* c, bool first) override {
    const std::size_t bytes = std::size_t(tile_) * std::size_t(tile_) * sizeof(double);
    const offpath_task_range_t ranges[kMultiplyRanges] = {
        {const_cast<double*>(a), bytes, OFFPATH_TASK_IN, 0},
        {const_cast<double*>(b), bytes, OFFPATH_TASK_IN, 0},
        {c, bytes, first ? std::uint32_t(OFFPATH_TASK_OUT) : std::uint32_t(OFFPATH_TASK_INOUT), 0}};
    session_.submit(MultiplyArgument{tile_, first}, ranges, std::uint64_t(1e9 * seconds_));
  }
  double end() override { return seconds_ = session_.wait(); }
  bool elsewhere() const override { return true; }

 private:
  int tile_;
  Session session_;
  double seconds_ = 0;  // of the product before, which was as large
};

}  // namespace

std::unique_ptr<Multiplier> make_tasks(int tile, std::string& problem) {
  Session session({"bspmm", "libbspmm_multiply.so", "bspmm_multiply", kMultiplySignature}, problem);
  if (!problem.empty()) return nullptr;
  return std::make_unique<Tasks>(tile, std::move(session));
}

}  // namespace bspmm
