// SPDX-License-Identifier: BSD-3-Clause
#include "exact.hpp"

#include <cmath>

namespace amr {

DamBreak::DamBreak(double deep, double shallow) : deep_(deep), shallow_(shallow) {
  // Behind the shock the water is as fast as in front of the rarefaction. The first falls with the depth, the second rises.
  const auto behind_rarefaction = [&](double h) { return 2 * (std::sqrt(deep) - std::sqrt(h)); };
  const auto behind_shock = [&](double h) { return (h - shallow) * std::sqrt(0.5 * (h + shallow) / (h * shallow)); };
  double low = shallow, high = deep;
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (behind_rarefaction(middle) > behind_shock(middle) ? low : high) = middle;
  }
  middle_ = low;
  flow_ = behind_rarefaction(low);
  shock_ = middle_ * flow_ / (middle_ - shallow);
}

double DamBreak::depth(double away, double time) const {
  if (time <= 0) return away < 0 ? deep_ : shallow_;
  const double slope = away / time;
  if (slope <= -std::sqrt(deep_)) return deep_;
  if (slope >= shock_) return shallow_;
  if (slope >= flow_ - std::sqrt(middle_)) return middle_;
  const double wave = (2 * std::sqrt(deep_) - slope) / 3;
  return wave * wave;
}

double DamBreak::ahead(double time) const { return shock_ * time; }
double DamBreak::back(double time) const { return std::sqrt(deep_) * time; }

}  // namespace amr
