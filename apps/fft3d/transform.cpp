#include "transform.hpp"

#include <algorithm>

namespace fft3d {
namespace {

fftw_complex* raw(Complex* values) { return reinterpret_cast<fftw_complex*>(values); }

// Both sides of a block of the z <-> (y, kx) transposition fit into the first-level cache.
constexpr int kTile = 16;

}  // namespace

Transform::Transform(const Slab& slab)
    : slab_(slab),
      plane_(fftw_array<double>(std::size_t(slab.ny) * slab.nx)),
      plane_spectrum_(fftw_array<Complex>(std::size_t(slab.ny) * slab.hx)),
      spectrum_(fftw_array<Complex>(std::max(slab.modes(), std::size_t(slab.hx) * slab.nz))) {
  // FFTW_ESTIMATE chooses the same plan every time; measured plans may differ from run to run in the last bit,
  // and then results could not be compared exactly.
  plane_forward_ = fftw_plan_dft_r2c_2d(slab.ny, slab.nx, plane_.get(), raw(plane_spectrum_.get()), FFTW_ESTIMATE);
  plane_inverse_ = fftw_plan_dft_c2r_2d(slab.ny, slab.nx, raw(plane_spectrum_.get()), plane_.get(), FFTW_ESTIMATE);
  const int n[] = {slab.nz};
  fftw_complex* lines = raw(spectrum_.get());
  lines_forward_ = fftw_plan_many_dft(1, n, slab.hx, lines, nullptr, 1, slab.nz, lines, nullptr, 1, slab.nz,
                                      FFTW_FORWARD, FFTW_ESTIMATE);
  lines_inverse_ = fftw_plan_many_dft(1, n, slab.hx, lines, nullptr, 1, slab.nz, lines, nullptr, 1, slab.nz,
                                      FFTW_BACKWARD, FFTW_ESTIMATE);
}

Transform::~Transform() {
  fftw_destroy_plan(plane_forward_);
  fftw_destroy_plan(plane_inverse_);
  fftw_destroy_plan(lines_forward_);
  fftw_destroy_plan(lines_inverse_);
}

void Transform::forward_planes(const double* field, Complex* packed) {
  const std::size_t plane_size = std::size_t(slab_.ny) * slab_.nx;
  for (int z = 0; z < slab_.z.size; ++z) {
    // Through an aligned plane: planes of odd sizes inside the field are not aligned as the plan wants it.
    std::copy_n(field + z * plane_size, plane_size, plane_.get());
    fftw_execute(plane_forward_);
    for (int peer = 0; peer < slab_.ranks; ++peer) {
      const std::size_t chunk = std::size_t(slab_.y_of[peer].size) * slab_.hx;
      std::copy_n(plane_spectrum_.get() + std::size_t(slab_.y_of[peer].begin) * slab_.hx, chunk,
                  packed + slab_.physical_displs[peer] + z * chunk);
    }
  }
}

void Transform::inverse_planes(const Complex* received, double* field) {
  const std::size_t plane_size = std::size_t(slab_.ny) * slab_.nx;
  for (int z = 0; z < slab_.z.size; ++z) {
    for (int peer = 0; peer < slab_.ranks; ++peer) {
      const std::size_t chunk = std::size_t(slab_.y_of[peer].size) * slab_.hx;
      std::copy_n(received + slab_.physical_displs[peer] + z * chunk, chunk,
                  plane_spectrum_.get() + std::size_t(slab_.y_of[peer].begin) * slab_.hx);
    }
    fftw_execute(plane_inverse_);
    std::copy_n(plane_.get(), plane_size, field + z * plane_size);
  }
}

// Peers own ascending z, so what they sent lies one after the other as [z][y][kx].
void Transform::forward_lines(const Complex* received) {
  const std::size_t stride = std::size_t(slab_.y.size) * slab_.hx;
  for (int y = 0; y < slab_.y.size; ++y) {
    const Complex* from = received + std::size_t(y) * slab_.hx;
    Complex* to = line(y, 0);
    for (int x0 = 0; x0 < slab_.hx; x0 += kTile) {
      for (int z0 = 0; z0 < slab_.nz; z0 += kTile) {
        const int x1 = std::min(x0 + kTile, slab_.hx), z1 = std::min(z0 + kTile, slab_.nz);
        for (int x = x0; x < x1; ++x)
          for (int z = z0; z < z1; ++z) to[std::size_t(x) * slab_.nz + z] = from[z * stride + x];
      }
    }
    fftw_execute_dft(lines_forward_, raw(to), raw(to));
  }
}

void Transform::inverse_lines(Complex* packed) {
  const std::size_t stride = std::size_t(slab_.y.size) * slab_.hx;
  for (int y = 0; y < slab_.y.size; ++y) {
    Complex* from = line(y, 0);
    Complex* to = packed + std::size_t(y) * slab_.hx;
    fftw_execute_dft(lines_inverse_, raw(from), raw(from));
    for (int z0 = 0; z0 < slab_.nz; z0 += kTile) {
      for (int x0 = 0; x0 < slab_.hx; x0 += kTile) {
        const int x1 = std::min(x0 + kTile, slab_.hx), z1 = std::min(z0 + kTile, slab_.nz);
        for (int z = z0; z < z1; ++z)
          for (int x = x0; x < x1; ++x) to[z * stride + x] = from[std::size_t(x) * slab_.nz + z];
      }
    }
  }
}

}  // namespace fft3d
