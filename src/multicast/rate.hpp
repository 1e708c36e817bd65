// SPDX-License-Identifier: BSD-3-Clause
// Rate: how fast the senders of a team may be, from what its tasks lose. A full queue loses less where senders are slower, a
// bad link does not. So a slower rate is a trial: what it does not cure is taken for the network's own from then on, and senders are
// as fast again as before. Pure. docs/design/0022-multicast.md
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace offpath::multicast {

class Rate {
 public:
  static constexpr uint64_t kJudged = 256;    // chunks: so many say something
  static constexpr double kSlowest = 0.25;    // of the link: what loses even then is not cured by waiting
  static constexpr double kTolerated = 0.01;  // beyond the network's own losses

  static constexpr uint32_t kForgotten = 64;  // judgements: then it is found out anew what the network loses

  // So many of those chunks did not come by multicast.
  void note(uint32_t lost, uint32_t of) {
    lost_ += lost;
    of_ += of;
    if (of_ < kJudged) return;
    const auto all = static_cast<double>(std::exchange(of_, 0));
    const double part = static_cast<double>(std::exchange(lost_, 0)) / all;
    works_ &= part <= 0.5;
    judge(part, kTolerated + 2 * std::sqrt(own_ * (1 - own_) / all));  // of so many, chance makes that more
  }
  // Of the link's rate.
  double part() const { return part_; }
  // False: most chunks were lost at a time.
  bool works() const { return works_; }

 private:
  struct Trial {
    double part;  // the faster rate before,
    double lost;  // and what it lost
  };

  void judge(double lost, double tolerated) {
    if (++judged_ % kForgotten == 0) own_ = 0;  // networks change, and it may have been judged wrong
    if (const auto trial = std::exchange(trial_, std::nullopt); trial && !is_cured(*trial, lost)) {
      own_ = std::min(lost, trial->lost);
      part_ = trial->part;
      return;
    }
    if (lost > own_ + tolerated) {
      const double slower = std::max(part_ * 3 / 4, kSlowest);
      if (slower < part_) trial_ = {part_, lost};
      part_ = slower;
      return;
    }
    own_ += (lost - own_) / 4;
    if (lost <= own_ + tolerated / 4) part_ = std::min(part_ * 17 / 16, 1.0);
  }

  // What a full queue let through before, it lets through now, too, which is a larger part now.
  bool is_cured(const Trial& trial, double lost) const {
    const double full_queue = 1 - (1 - trial.lost) * trial.part / part_;
    return lost <= (trial.lost + std::max(full_queue, own_)) / 2;
  }

  uint64_t lost_ = 0, of_ = 0;
  uint32_t judged_ = 0;  // times
  bool works_ = true;
  double part_ = 1;
  double own_ = 0;  // part of the chunks that the network loses at any rate
  std::optional<Trial> trial_;
};

}  // namespace offpath::multicast
