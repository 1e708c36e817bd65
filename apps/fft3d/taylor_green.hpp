// The Taylor-Green vortex on [0, 2 pi)^3 and its Fourier transform in closed form.
//
//   u =  sin x cos y cos z      v = -cos x sin y cos z      w = 0
//   p = (cos 2x + cos 2y) (cos 2z + 2) / 16
//
// Mean squares: 1/8, 1/8, 0, 9/512; kinetic energy per volume (1/8 + 1/8 + 0) / 2 = 1/8.
#pragma once

#include <complex>
#include <vector>

namespace fft3d {

using Complex = std::complex<double>;

// coefficient * exp(i (kx x + ky y + kz z)); kx < 0 is listed too, so the real field is the plain sum.
struct Mode {
  int kx, ky, kz;
  Complex coefficient;
};

constexpr int kFields = 4;  // u, v, w, p

// The field itself at a point; field is taken modulo kFields, here and below.
double taylor_green_value(int field, double x, double y, double z);

std::vector<Mode> taylor_green_modes(int field);

}  // namespace fft3d
