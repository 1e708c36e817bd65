// The local pieces of the transform of one variable: what a rank computes between two transposes.
//
// Not thread safe: the scratch buffers are shared by all variables, a piece is finished before the next begins.
#pragma once

#include <complex>
#include <cstdlib>
#include <memory>
#include <span>

#include <fftw3.h>

#include "slab.hpp"
#include "taylor_green.hpp"

namespace fft3d {

struct FftwFree {
  void operator()(void* memory) const { fftw_free(memory); }
};
template <class T>
using FftwArray = std::unique_ptr<T[], FftwFree>;

// Never null for zero elements: MPI and FFTW both like real addresses.
template <class T>
FftwArray<T> fftw_array(std::size_t count) {
  void* memory = fftw_malloc(sizeof(T) * (count ? count : 1));
  if (!memory) std::abort();
  return FftwArray<T>(static_cast<T*>(memory));
}

class Transform {
 public:
  explicit Transform(const Slab& slab);
  ~Transform();
  Transform(const Transform&) = delete;
  Transform& operator=(const Transform&) = delete;

  // field [z][y][x] -> 2-D transform of each plane -> packed for each peer.
  void forward_planes(const double* field, Complex* packed);
  // received [z][y][kx] -> spectrum() [y][kx][kz], not yet scaled.
  void forward_lines(const Complex* received);
  // spectrum() -> inverse along z -> packed for each peer. Destroys spectrum().
  void inverse_lines(Complex* packed);
  // received from each peer -> inverse of each plane -> field.
  void inverse_planes(const Complex* received, double* field);

  Complex* line(int y, int kx) { return spectrum_.get() + (std::size_t(y) * slab_.hx + kx) * slab_.nz; }
  std::span<Complex> spectrum() { return {spectrum_.get(), slab_.modes()}; }

 private:
  const Slab& slab_;
  FftwArray<double> plane_;
  FftwArray<Complex> plane_spectrum_;
  FftwArray<Complex> spectrum_;
  fftw_plan plane_forward_, plane_inverse_, lines_forward_, lines_inverse_;
};

}  // namespace fft3d
