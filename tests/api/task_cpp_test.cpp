// SPDX-License-Identifier: BSD-3-Clause
// Tasks by offpath/offpath.hpp.
#include "task.hpp"

#include <offpath/offpath.hpp>

namespace offpath::testing {

extern "C" void use_closures(const offpath_attach_params_t* params);

namespace {

TEST(TaskCpp, LambdasOfASharedObject) {
  Job(1).run([](Process& p) {
    const auto params = p.params();
    use_closures(&params);
  });
}

TEST(TaskCpp, FunctionsByName) {
  Job(1).run([](Process& p) {
    Session session(p.params());
    const Function plain = session.function(kFunctions, "plain");
    std::vector<double> values{1, 2, 3};
    const Operation first = session.task(plain, 0.5, {inout(std::span(values))});
    REQUIRE(first.wait());
    REQUIRE(values == (std::vector<double>{1.5, 2.5, 3.5}));
    REQUIRE(first.result().executor != 0);
    const auto refused = [&](offpath_status_t status, const char* says, const auto& call) {
      try {
        call();
      } catch (const Error& error) {
        if (error.status() == status && strstr(error.what(), says) != nullptr) return;
        fail_process(__FILE__, __LINE__, error.what());
      }
      fail_process(__FILE__, __LINE__, "nothing was thrown");
    };
    refused(OFFPATH_ERR_ARGUMENT, "exports no function", [&] { session.function(kFunctions, "nowhere"); });
    refused(OFFPATH_ERR_ARGUMENT, "no code at", [&] { session.function(kFunctions, "+ffffffff"); });
    refused(OFFPATH_ERR_ARGUMENT, "no code at", [&] { session.function(kFunctions, "+0"); });
    refused(OFFPATH_ERR_ARGUMENT, "in the program itself", [&] { session.task([](const offpath_task_t&) {}, {}); });
    const Operation failed = session.task(session.function(kFunctions, "misbehave", "misbehave 1"), 'r', {});
    refused(OFFPATH_ERR_TASK, "nobody is at home", [&] { failed.wait(); });
    const Operation after = session.task(plain, 0.5, {inout(std::span(values))}, {.after = {failed.get()}});
    refused(OFFPATH_ERR_DEPENDENCE, "has failed", [&] { after.wait(); });
  });
}

}  // namespace
}  // namespace offpath::testing
