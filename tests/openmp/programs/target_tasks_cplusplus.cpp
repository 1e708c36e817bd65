// SPDX-License-Identifier: BSD-3-Clause
// As target_tasks.c, by the interface for C++.
#include "check.h"

#include <offpath/offpath.hpp>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#pragma omp declare target
template <typename T>
static T scaled(T value, T factor) {
  return value * factor;
}

static int scale(const offpath_task_t* task) {
  const double factor = *static_cast<const double*>(task->argument);
  const auto values = offpath::range_of<double>(*task, 0);
  for (double& value : values) value = scaled(value, factor);
  return 0;
}
OFFPATH_TASK_FUNCTION(scale, "scale(double, inout double[]) 1");
#pragma omp end declare target

int main() {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  params.flags = OFFPATH_ATTACH_NODE_ONLY;
  std::random_device random;
  for (auto& byte : params.job_token) byte = static_cast<uint8_t>(random());
  const offpath::Session session(params);
  const auto function = session.target_function("scale", "scale(double, inout double[]) 1");
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), 0.0);
  session.task(function, 3.0, {offpath::inout(std::span(values))}).wait();
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == 3.0 * static_cast<double>(i));
  bool refused = false;
  try {
    session.target_function("scale", "scale 2");
  } catch (const offpath::Error& error) {
    refused = strstr(error.what(), "has the signature") != nullptr;
  }
  CHECK(refused);
  return check_status();
}
