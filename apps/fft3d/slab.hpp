// How grid and spectrum are cut into slabs, and who sends what in a transpose.
//
// Physical space: rank r owns planes of z, each ny x nx reals.   [z local][y][x]
// Fourier space:  rank r owns lines of y, with all kx and kz.    [y local][kx][kz]
// Nothing needs to divide evenly, a rank may own no plane or no line at all.
#pragma once

#include <string>
#include <vector>

namespace fft3d {

struct Range {
  int begin = 0, size = 0;
};

// The part of n points that rank owns: the first n % ranks ranks have one more.
Range split(int n, int ranks, int rank);

struct Slab {
  int nx, ny, nz;
  int hx;  // stored kx: a real field's spectrum is symmetric, half of it is enough
  int ranks, rank;
  Range y, z;  // own lines of Fourier space, own planes of physical space
  std::vector<Range> y_of, z_of;

  // In complex numbers; forward goes from physical to Fourier space.
  std::vector<int> physical_counts, physical_displs;
  std::vector<int> fourier_counts, fourier_displs;

  Slab(int nx, int ny, int nz, int ranks, int rank);

  std::size_t points() const { return std::size_t(z.size) * ny * nx; }
  std::size_t planes_complex() const { return std::size_t(z.size) * ny * hx; }
  std::size_t modes() const { return std::size_t(y.size) * hx * nz; }
};

// Empty when all counts and displacements of every rank fit into the int of MPI, else one line for the user.
std::string check_counts_fit(int nx, int ny, int nz, int ranks);

// kx, ky or kz of an index 0..n-1 of a full spectrum.
inline int wave_number(int index, int n) { return index <= n / 2 ? index : index - n; }

}  // namespace fft3d
