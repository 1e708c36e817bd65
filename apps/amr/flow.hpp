// SPDX-License-Identifier: BSD-3-Clause
// Shallow water over a flat bottom: depth and momentum of a column, what flows through a face. Units in which gravity is 1.
#pragma once

#include <algorithm>
#include <cmath>

namespace amr {

constexpr int kFields = 3;  // depth, momentum along x, momentum along y

struct Column {
  double h, hu, hv;
};

// Through a face across x. Across y: with the momenta exchanged, see turned().
inline Column flux(const Column& q) {
  const double u = q.hu / q.h;
  return {q.hu, q.hu * u + 0.5 * q.h * q.h, q.hv * u};
}
inline Column turned(const Column& q) { return {q.h, q.hv, q.hu}; }

// Fastest wave in either direction.
inline double speed(const Column& q) { return std::max(std::fabs(q.hu), std::fabs(q.hv)) / q.h + std::sqrt(q.h); }

// Between two columns, after Harten, Lax and van Leer.
inline Column flux_between(const Column& left, const Column& right) {
  const double ul = left.hu / left.h, ur = right.hu / right.h, cl = std::sqrt(left.h), cr = std::sqrt(right.h);
  const double back = std::min(0.0, std::min(ul - cl, ur - cr)), ahead = std::max(0.0, std::max(ul + cl, ur + cr));
  const double scale = 1 / (ahead - back), both = back * ahead;
  const Column fl = flux(left), fr = flux(right);
  return {(ahead * fl.h - back * fr.h + both * (right.h - left.h)) * scale,
          (ahead * fl.hu - back * fr.hu + both * (right.hu - left.hu)) * scale,
          (ahead * fl.hv - back * fr.hv + both * (right.hv - left.hv)) * scale};
}

// The flatter of two slopes; none where they disagree.
inline double limited(double a, double b) {
  const double flatter = std::min(std::fabs(a), std::fabs(b));
  return a * b > 0 ? std::copysign(flatter, a) : 0.0;
}

}  // namespace amr
