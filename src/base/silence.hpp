// SPDX-License-Identifier: BSD-3-Clause
// Silence: when a process that is waited for counts as silent. Pure, but for the limit. Time counts only as far as it
// was looked at, a step at a time: a watcher that was stopped itself has heard nothing meanwhile. Nor does time count
// in which the watched process was starved (starvation.hpp): it could give no sign of life.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace offpath::base {

// How long a service that is waited for, or one that services wait for, may give no sign of life:
// OFFPATH_SERVICE_SILENCE_MS. 0: for ever.
uint64_t silence_limit_ns();

class Silence {
 public:
  enum class Verdict {
    wait,
    ask,      // for a sign of life
    starved,  // no answer for the limit, but for want of a processor
    silent    // no answer for the limit
  };

  // 0: nobody is ever silent.
  explicit Silence(uint64_t limit_ns) : limit_ns_(limit_ns) {}

  // To be called while waiting, at least this often.
  static uint64_t interval_ns(uint64_t limit_ns) { return limit_ns / kSteps; }

  // `answered`: there was an answer to the last question.
  Verdict look(uint64_t now_ns, bool answered) {
    return look(now_ns, answered, [] { return uint64_t{0}; });
  }

  // `starved_ns`: asked when half the limit has passed without an answer, then at its end: for how long the other was starved since it
  // was last asked.
  template <typename StarvedNs>
  Verdict look(uint64_t now_ns, bool answered, StarvedNs&& starved_ns) {
    if (limit_ns_ == 0) return Verdict::wait;
    if (looked_ns_ != 0 && now_ns > looked_ns_)
      passed_ns_ += signed_ns(std::min(now_ns - looked_ns_, 2 * interval_ns(limit_ns_)));
    looked_ns_ = now_ns;
    if (asked_ && answered) asked_ = false, passed_ns_ = 0;
    if (!asked_) {
      if (passed_ns_ < signed_ns(interval_ns(limit_ns_))) return Verdict::wait;
      asked_ = true, doubted_ = false, passed_ns_ = -signed_ns(std::exchange(spared_ns_, 0));
      return Verdict::ask;
    }
    const bool over = passed_ns_ >= signed_ns(limit_ns_);
    if (!over && (doubted_ || passed_ns_ < signed_ns(limit_ns_ / 2))) return Verdict::wait;
    const uint64_t spared_ns = starved_ns();
    doubted_ = true;
    if (!over) return Verdict::wait;
    passed_ns_ = std::max<int64_t>(passed_ns_ - signed_ns(spared_ns), 0);
    if (passed_ns_ < signed_ns(limit_ns_)) return Verdict::starved;
    asked_ = false, passed_ns_ = 0;
    return Verdict::silent;
  }

  // The other has said that it was starved for so long. It may well be so again: the next question has that much more time.
  void note_starved(uint64_t ns) { spared_ns_ = std::max(spared_ns_, std::min(ns, kMostSpared * limit_ns_)); }
  bool spares() const { return spared_ns_ != 0; }
  // Nothing is awaited from the other now: what it was asked does not count.
  void rest() { asked_ = false, passed_ns_ = 0, looked_ns_ = 0; }

  // How long the last question has had no answer, as far as it was looked at.
  uint64_t unanswered_ns() const { return asked_ ? static_cast<uint64_t>(std::max<int64_t>(passed_ns_, 0)) : 0; }

 private:
  static constexpr uint64_t kSteps = 8;
  static constexpr uint64_t kMostSpared = 3;  // limits
  static int64_t signed_ns(uint64_t ns) { return static_cast<int64_t>(ns); }
  uint64_t limit_ns_;
  uint64_t looked_ns_ = 0;
  uint64_t spared_ns_ = 0;
  int64_t passed_ns_ = 0;  // since the question, or else since the answer
  bool asked_ = false;
  bool doubted_ = false;  // half the limit has passed since the question
};

}  // namespace offpath::base
