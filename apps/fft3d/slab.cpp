#include "slab.hpp"

#include <algorithm>
#include <climits>

namespace fft3d {

Range split(int n, int ranks, int rank) {
  const int base = n / ranks, extra = n % ranks;
  return {rank * base + std::min(rank, extra), base + (rank < extra ? 1 : 0)};
}

Slab::Slab(int nx_, int ny_, int nz_, int ranks_, int rank_)
    : nx(nx_),
      ny(ny_),
      nz(nz_),
      hx(nx_ / 2 + 1),
      ranks(ranks_),
      rank(rank_),
      y(split(ny_, ranks_, rank_)),
      z(split(nz_, ranks_, rank_)) {
  int physical = 0, fourier = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    y_of.push_back(split(ny, ranks, peer));
    z_of.push_back(split(nz, ranks, peer));
    physical_counts.push_back(z.size * y_of[peer].size * hx);
    fourier_counts.push_back(z_of[peer].size * y.size * hx);
    physical_displs.push_back(physical);
    fourier_displs.push_back(fourier);
    physical += physical_counts.back();
    fourier += fourier_counts.back();
  }
}

std::string check_counts_fit(int nx, int ny, int nz, int ranks) {
  const long long hx = nx / 2 + 1;
  const long long most =
      hx * std::max<long long>((long long)split(nz, ranks, 0).size * ny, (long long)split(ny, ranks, 0).size * nz);
  if (most <= INT_MAX) return {};
  return "the grid is too large for " + std::to_string(ranks) + " ranks (MPI counts are int, one rank would hold " +
         std::to_string(most) + " complex numbers). Use more ranks or a smaller grid";
}

}  // namespace fft3d
