// SPDX-License-Identifier: BSD-3-Clause
// Time steps as tasks of Offpath's C API. Patches lie in memory that the service shares, so a task works where they lie.
#include "../advancer.hpp"

#include <algorithm>

#include "../../task_session/session.hpp"
#include "step.hpp"

namespace amr {
namespace {

using task_session::Session;

class Tasks : public Advancer {
 public:
  Tasks(const Options& options, Session session) : options_(options), session_(std::move(session)) {}

  double* allocate(std::size_t doubles) override {
    return static_cast<double*>(session_.allocate(doubles * sizeof(double)));
  }
  // The longest ones first: what is left in the end is short.
  double advance(std::vector<Patch>& patches, double time_step) override {
    std::vector<const Patch*> order;
    for (const Patch& patch : patches) order.push_back(&patch);
    std::stable_sort(order.begin(), order.end(),
                     [](const Patch* a, const Patch* b) { return a->shape.n > b->shape.n; });
    double cells = 0;
    for (const Patch* patch : order) {
      const Shape s = patch->shape;
      const StepArgument argument{s.n, options_.work, time_step * s.n};
      const offpath_task_range_t ranges[kStepRanges] = {
          {patch->state, s.state() * sizeof(double), OFFPATH_TASK_IN, 0},
          {patch->next, s.state() * sizeof(double), OFFPATH_TASK_OUT, 0},
          {patch->result, s.result() * sizeof(double), OFFPATH_TASK_OUT, 0}};
      session_.submit(argument, ranges, std::uint64_t(double(s.n) * s.n * ns_of_cell_));
      cells += double(s.n) * s.n;
    }
    const double seconds = session_.wait();
    if (cells > 0) ns_of_cell_ = 1e9 * seconds / cells;
    return seconds;
  }

  void waits(bool begins) override { session_.note_wait(begins); }

 private:
  const Options& options_;
  Session session_;
  double ns_of_cell_ = 0;  // as in the step before
};

}  // namespace

std::unique_ptr<Advancer> make_tasks(const Options& options, std::string& problem) {
  Session session({"amr", "libamr_step.so", "amr_step", kStepSignature}, problem);
  if (!problem.empty()) return nullptr;
  return std::make_unique<Tasks>(options, std::move(session));
}

}  // namespace amr
