// SPDX-License-Identifier: BSD-3-Clause
// One time step of one patch: a pure function of its cells and ghosts, the same wherever it runs. Second order in space and
// time (limited slopes, half a step ahead at the faces).
#pragma once

#include <algorithm>
#include <vector>

#include "flow.hpp"
#include "shape.hpp"

namespace amr {

// A row's columns as they are at their four faces after half a step.
class FaceRow {
 public:
  explicit FaceRow(Shape shape) : shape_(shape), values_(std::size_t(kSides) * 3 * std::size_t(shape.stride())) {}

  void set(Side side, int i, const Column& q) {
    double* const at = place(side, i);
    at[0] = q.h, at[stride()] = q.hu, at[2 * stride()] = q.hv;
  }
  Column get(Side side, int i) const {
    const double* const at = const_cast<FaceRow*>(this)->place(side, i);
    return {at[0], at[stride()], at[2 * stride()]};
  }
  void predict(const double* state, int j, double ratio) {
    const std::size_t field = shape_.field(), up = stride();
    for (int i = -1; i <= shape_.n; ++i) {
      const double* const q = state + shape_.at(i, j);
      Column west, east, south, north;
      const auto split = [&](double Column::*value, const double* c) {
        const double along = 0.5 * limited(c[0] - c[-1], c[1] - c[0]);
        const double across = 0.5 * limited(c[0] - *(c - up), c[up] - c[0]);
        west.*value = c[0] - along, east.*value = c[0] + along;
        south.*value = c[0] - across, north.*value = c[0] + across;
      };
      split(&Column::h, q), split(&Column::hu, q + field), split(&Column::hv, q + 2 * field);
      const Column fw = flux(west), fe = flux(east), gs = turned(flux(turned(south))), gn = turned(flux(turned(north)));
      const double half = 0.5 * ratio;
      const Column change{half * (fw.h - fe.h + (gs.h - gn.h)), half * (fw.hu - fe.hu + (gs.hu - gn.hu)),
                          half * (fw.hv - fe.hv + (gs.hv - gn.hv))};
      const auto later = [&](const Column& c) { return Column{c.h + change.h, c.hu + change.hu, c.hv + change.hv}; };
      set(kWest, i, later(west)), set(kEast, i, later(east)), set(kSouth, i, later(south)),
          set(kNorth, i, later(north));
    }
  }

 private:
  std::size_t stride() const { return std::size_t(shape_.stride()); }
  double* place(Side side, int i) {
    return values_.data() + std::size_t(side) * 3 * stride() + std::size_t(i + kGhosts);
  }

  Shape shape_;
  std::vector<double> values_;
};

// ratio: time step / width of a cell. next: as old, ghosts included, but for its cells. result: see Shape.
inline void advance(Shape shape, const double* old, double* next, double* result, double ratio) {
  const std::size_t field = shape.field();
  const int n = shape.n;
  std::copy(old, old + shape.state(), next);
  const auto add = [&](int i, int j, double sign, const Column& f) {
    double* const at = next + shape.at(i, j);
    at[0] += sign * f.h, at[field] += sign * f.hu, at[2 * field] += sign * f.hv;
  };
  const auto note = [&](Side side, int k, const Column& f) {
    result[shape.flux(side, 0, k)] = f.h, result[shape.flux(side, 1, k)] = f.hu, result[shape.flux(side, 2, k)] = f.hv;
  };
  FaceRow below(shape), row(shape);
  for (int j = -1; j <= n; ++j) {
    std::swap(below, row);
    row.predict(old, j, ratio);
    for (int i = 0; i < n && j >= 0; ++i) {
      const Column g = turned(flux_between(turned(below.get(kNorth, i)), turned(row.get(kSouth, i))));
      if (j > 0) add(i, j - 1, -ratio, g);
      if (j < n) add(i, j, ratio, g);
      if (j == 0) note(kSouth, i, g);
      if (j == n) note(kNorth, i, g);
    }
    for (int i = 0; i <= n && j >= 0 && j < n; ++i) {
      const Column f = flux_between(row.get(kEast, i - 1), row.get(kWest, i));
      if (i > 0) add(i - 1, j, -ratio, f);
      if (i < n) add(i, j, ratio, f);
      if (i == 0) note(kWest, j, f);
      if (i == n) note(kEast, j, f);
    }
  }
  double fastest = 0;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      const double* const at = next + shape.at(i, j);
      fastest = std::max(fastest, speed({at[0], at[field], at[2 * field]}));
    }
  result[shape.fastest()] = fastest;
}

}  // namespace amr
