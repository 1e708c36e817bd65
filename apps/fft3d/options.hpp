// SPDX-License-Identifier: BSD-3-Clause
// Command line of fft3d.
#pragma once

#include <string>

#include "../kit/ranks.hpp"
#include "slab.hpp"

namespace fft3d {

// Modes up to 2 must be distinct from their aliases for the closed form to hold.
inline constexpr int kSmallestGrid = 5, kLargestGrid = 8192;

struct Options : kit::Options {
  Options()
      : kit::Options("fft3d",
                     "3-D real-to-complex Fourier transforms of a Taylor-Green vortex (velocity u, v, w and pressure), "
                     "slabs over\nthe ranks, one transpose per variable in flight at a time (MPI_Ialltoallv, "
                     "MPI_Waitany).") {}
  int n = number(n, "--n", 64, kSmallestGrid, kLargestGrid, "grid points in each direction");
  int nx = number(nx, "--nx", 0, kSmallestGrid, kLargestGrid, "in the first");
  int ny = number(ny, "--ny", 0, kSmallestGrid, kLargestGrid, "in the second");
  int nz = number(nz, "--nz", 0, kSmallestGrid, kLargestGrid, "in the third");
  int variables =
      number(variables, "--variables", 4, 1, 16, "fields transformed together (4: u v w p, further ones repeat them)");
  int repeats = number(repeats, "--repeats", 4, 1, 1000000, "timed iterations, each forward, pointwise step, inverse");
  int work = number(work, "--work", 0, 0, 1000000,
                    "Runge-Kutta steps of the pointwise terms in each iteration (0: transforms only): friction in "
                    "physical space, advection by a mean wind and diffusion in Fourier space");
  std::string json = text(json, "--json", "rank 0 writes times and checksum to that file");
  std::string field = text(field, "--field", "rank 0 writes what it transforms there, as doubles");

 private:
  std::string check() override {
    for (int* size : {&nx, &ny, &nz}) *size = *size != 0 ? *size : n;
    return check_counts_fit(nx, ny, nz, kit::ranks());
  }
};

}  // namespace fft3d
