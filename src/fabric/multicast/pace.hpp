// SPDX-License-Identifier: BSD-3-Clause
// Pace: a bucket that fills at a rate, so that a sender is no faster than the links of those who hear it. Pure: times are the
// caller's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace offpath::fabric::multicast {

class Pace {
 public:
  // Rate 0: as fast as it goes. `burst_bytes`: what may leave at once after a rest.
  Pace(double bytes_per_ns, double burst_bytes) : rate_(bytes_per_ns), burst_(burst_bytes), level_(burst_bytes) {}

  void set_rate(double bytes_per_ns) { rate_ = bytes_per_ns; }
  // How long until something may leave, with so many bytes before it.
  uint64_t wait_ns(uint64_t now_ns, double before = 0) {
    if (rate_ <= 0) return 0;
    const double passed = static_cast<double>(now_ns - std::exchange(since_ns_, now_ns));
    if (begun_) level_ = std::min(burst_, level_ + passed * rate_);
    begun_ = true;
    const double level = level_ - before;
    return level > 0 ? 0 : static_cast<uint64_t>(std::ceil(-level / rate_)) + 1;
  }
  // Has left: may be more than there is, which is waited for afterwards.
  void spend(double bytes) {
    if (rate_ > 0) level_ -= bytes;
  }

 private:
  double rate_;
  double burst_;
  double level_;
  uint64_t since_ns_ = 0;
  bool begun_ = false;
};

}  // namespace offpath::fabric::multicast
