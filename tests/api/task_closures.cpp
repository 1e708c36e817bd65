// SPDX-License-Identifier: BSD-3-Clause
// Lambdas as tasks: in a shared object, as executors load it.
#include <offpath/offpath.hpp>

#include <cstdlib>
#include <numeric>

namespace {
void require(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "closures: %s\n", what);
  exit(1);
}
}  // namespace

extern "C" __attribute__((visibility("default"))) void use_closures(const offpath_attach_params_t* params) {
  offpath::Session session(*params);
  const auto values = session.allocate<double>(100);
  std::iota(values.span().begin(), values.span().end(), 0.0);
  std::vector<double> sums(2);
  const double factor = 2;
  const offpath::Operation scaled = session.task(
      [factor](const offpath_task_t& task) {
        for (double& value : offpath::range_of<double>(task, 0)) value *= factor;
      },
      {offpath::inout(values.span())});
  const auto sum = [](const offpath_task_t& task) {
    const auto all = offpath::range_of<const double>(task, 0);
    offpath::range_of<double>(task, 1)[0] = std::accumulate(all.begin(), all.end(), 0.0);
    return 0;
  };
  std::vector<offpath::Operation> sums_of;
  for (size_t i = 0; i < sums.size(); ++i) {
    sums_of.push_back(session.task(sum, {offpath::in(values.span()), offpath::out(std::span(sums).subspan(i, 1))},
                                   {.after = {scaled.get()}, .priority = 1}));
  }
  for (const auto& op : sums_of) require(op.wait(), "a sum has not ended");
  require(sums[0] == 9900 && sums[1] == 9900, "the sums are wrong");
  const offpath::Operation thrown =
      session.task([](const offpath_task_t&) { throw std::runtime_error("no such element"); }, {});
  try {
    thrown.wait();
    require(false, "an exception got lost");
  } catch (const offpath::Error& error) {
    require(error.status() == OFFPATH_ERR_TASK, "an exception has another status");
    require(std::string(error.what()).find("no such element") != std::string::npos, error.what());
    require(thrown.result().signal == 0, "an exception was a crash");
  }
}
