// SPDX-License-Identifier: BSD-3-Clause
// Silence: when somebody who is waited for counts as silent. Pure, but for the limit. Time counts only as far as it was looked at, a step
// at a time: whoever was stopped himself, with the one he watches or without, has heard nothing meanwhile.
#pragma once

#include <algorithm>
#include <cstdint>

namespace offpath::base {

// How long a service that is waited for, or one that services wait for, may give no sign of life:
// OFFPATH_SERVICE_SILENCE_MS. 0: for ever.
uint64_t silence_limit_ns();

class Silence {
 public:
  enum class Verdict {
    wait,
    ask,    // for a sign of life
    silent  // no answer for the limit
  };

  // 0: nobody is ever silent.
  explicit Silence(uint64_t limit_ns) : limit_ns_(limit_ns) {}

  // To be called while waiting, at least this often.
  static uint64_t interval_ns(uint64_t limit_ns) { return limit_ns / kSteps; }

  // `answered`: there was an answer to the last question.
  Verdict look(uint64_t now_ns, bool answered) {
    if (limit_ns_ == 0) return Verdict::wait;
    if (looked_ns_ != 0 && now_ns > looked_ns_) passed_ns_ += std::min(now_ns - looked_ns_, 2 * interval_ns(limit_ns_));
    looked_ns_ = now_ns;
    if (asked_ && answered) asked_ = false, passed_ns_ = 0;
    if (passed_ns_ < (asked_ ? limit_ns_ : interval_ns(limit_ns_))) return Verdict::wait;
    passed_ns_ = 0;
    if (asked_) return Verdict::silent;
    asked_ = true;
    return Verdict::ask;
  }

  // How long the last question has had no answer, as far as it was looked at.
  uint64_t unanswered_ns() const { return asked_ ? passed_ns_ : 0; }

 private:
  static constexpr uint64_t kSteps = 8;
  uint64_t limit_ns_;
  uint64_t looked_ns_ = 0;
  uint64_t passed_ns_ = 0;  // since the question, or else since the answer
  bool asked_ = false;
};

}  // namespace offpath::base
