// SPDX-License-Identifier: BSD-3-Clause
// Which part of an ordinary step's pairs the other side takes, so that both are ready at the same time. A rank finds out
// for itself: nobody else needs to know.
#pragma once

namespace minimd {

class Balance {
 public:
  // `fixed`: that part; 0: found out in the first shared steps, and kept from then on.
  explicit Balance(double fixed) : theirs_(fixed > 0 ? fixed : 0.5), left_(fixed > 0 ? 0 : kSteps) {}

  double theirs() const { return theirs_; }
  void took(double own_s, double their_s) {
    if (left_ == 0 || !(own_s > 0) || !(their_s > 0)) return;
    --left_;
    const double own_rate = (1 - theirs_) / own_s, their_rate = theirs_ / their_s;
    const double wanted = their_rate / (own_rate + their_rate);
    theirs_ = 0.5 * (theirs_ + (wanted < kLeast ? kLeast : wanted > 1 - kLeast ? 1 - kLeast : wanted));
  }

 private:
  static constexpr int kSteps = 12;
  static constexpr double kLeast = 0.02;  // a side that once was slow can still show that it is not
  double theirs_;
  int left_;
};

}  // namespace minimd
