// The pointwise terms between and around the transforms, by classical Runge-Kutta (RK4) steps:
//
//   du/dt = -friction(t) u - wind(t) . grad u + viscosity laplace u
//
// The friction is taken in physical space, half before the forward and half after the inverse transform; wind and
// diffusion are taken in Fourier space, mode by mode. All is linear, so the Taylor-Green vortex keeps a closed form:
// each of its modes is multiplied by a number, and the same functions applied to that one mode give the number.
#pragma once

#include <cstddef>

#include "taylor_green.hpp"

namespace fft3d {

enum class Half { first, second };

class TimeStep {
 public:
  // steps 0: no pointwise terms, transforms only.
  TimeStep(int steps, int nx, int ny, int nz);

  int steps() const { return steps_; }

  // Of iteration number `iteration`; the second half is the one after the inverse transform.
  void friction(int iteration, Half half, double* values, std::size_t count) const;

  // Wind and diffusion of one line of modes that share kx and ky; kz has count entries.
  void wind_and_diffusion(int iteration, int kx, int ky, const int* kz, Complex* line, std::size_t count) const;

 private:
  int steps_;
  double step_;
};

}  // namespace fft3d
