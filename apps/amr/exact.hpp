// SPDX-License-Identifier: BSD-3-Clause
// The known solution of a dam break onto wet ground: a rarefaction runs back, a shock ahead, still water between them.
#pragma once

namespace amr {

class DamBreak {
 public:
  // Depths before it and behind it; precondition: deep > shallow > 0.
  DamBreak(double deep, double shallow);

  double depth(double away, double time) const;  // away: from the dam, towards the shallow water
  double ahead(double time) const;               // how far the shock has come
  double back(double time) const;                // how far the rarefaction has

 private:
  double deep_, shallow_, middle_, flow_, shock_;
};

}  // namespace amr
