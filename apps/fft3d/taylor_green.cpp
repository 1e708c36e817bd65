#include "taylor_green.hpp"

#include <cmath>

namespace fft3d {
namespace {

constexpr Complex kI{0, 1};

// sin a = sum over s = +1, -1 of -i s / 2 exp(i s a);  cos a = sum of 1/2 exp(i s a).
std::vector<Mode> velocity(bool along_x) {
  std::vector<Mode> modes;
  for (int sx : {1, -1}) {
    for (int sy : {1, -1}) {
      for (int sz : {1, -1}) {
        const Complex value = along_x ? -kI * double(sx) / 8.0 : kI * double(sy) / 8.0;
        modes.push_back({sx, sy, sz, value});
      }
    }
  }
  return modes;
}

std::vector<Mode> pressure() {
  std::vector<Mode> modes;
  for (int s : {2, -2}) {
    for (int kz : {0, 2, -2}) {
      const double value = kz == 0 ? 1.0 / 16 : 1.0 / 64;
      modes.push_back({s, 0, kz, value});
      modes.push_back({0, s, kz, value});
    }
  }
  return modes;
}

}  // namespace

double taylor_green_value(int field, double x, double y, double z) {
  switch (field % kFields) {
    case 0:
      return std::sin(x) * std::cos(y) * std::cos(z);
    case 1:
      return -std::cos(x) * std::sin(y) * std::cos(z);
    case 2:
      return 0;
    default:
      return (std::cos(2 * x) + std::cos(2 * y)) * (std::cos(2 * z) + 2) / 16;
  }
}

std::vector<Mode> taylor_green_modes(int field) {
  switch (field % kFields) {
    case 0:
      return velocity(true);
    case 1:
      return velocity(false);
    case 2:
      return {};
    default:
      return pressure();
  }
}

}  // namespace fft3d
