// SPDX-License-Identifier: BSD-3-Clause
#include "attach/loss.hpp"

#include "attach/statistics.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace offpath::attach {
namespace {

TEST(Loss, NamesTheSilenceAndWhatToDo) {
  offpath_session_counters_t counters{};
  EXPECT_EQ(loss_of("a", counters).problem, "the service on host a was lost");
  counters.silence_ms = 400;
  const Loss silent = loss_of("a", counters);
  EXPECT_EQ(silent.problem, "the service on host a gave no sign of life for 400 ms and was ended");
  EXPECT_NE(silent.cure.find("OFFPATH_SERVICE_SILENCE_MS"), std::string::npos);
  EXPECT_EQ(parting_of("a", "b", 0).problem, "the service on host a lost the connection to that on host b");
  EXPECT_EQ(parting_of("a", "b", 9).problem,
            "the service on host a heard nothing of that on host b for 9 ms and gave it up");
}

TEST(Loss, OfNothingWhereTheServiceWaitsForAProcessor) {
  const Loss starved = starved_of("a", 400999999, 4);
  EXPECT_EQ(
      starved.problem,
      "the service on host a waits for a processor: it was ready to run for 400 ms and got none, beside 4 ranks of "
      "this node");
  EXPECT_NE(starved.cure.find("OFFPATH_SERVICE_CORES"), std::string::npos);
}

TEST(Parting, IsToldByWhoKnowsWhy) {
  const Parting none, ended{0, 1, 0}, later{2, 1, 0}, silent{1, 0, 400};
  const std::vector<Parting> ordered{silent, ended, later, none};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j) {
      EXPECT_EQ(says_more(ordered[i], ordered[j]), i < j) << i << ' ' << j;
    }
  }
}

TEST(Loss, StandsInTheStatisticsOnlyIfThereIsOne) {
  JsonObject line;
  add_loss({}, &line);
  EXPECT_EQ(line.json(), "{}");
  add_loss({"p", "c"}, &line);
  EXPECT_EQ(line.json(), R"({"loss":"p","cure":"c"})");
}

}  // namespace
}  // namespace offpath::attach
