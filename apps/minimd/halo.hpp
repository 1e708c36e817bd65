// SPDX-License-Identifier: BSD-3-Clause
// Positions of atoms near a face go to the neighbours, where they are ghosts; forces on ghosts come back. Host and DPU
// run this, each among their own kind.
#pragma once

#include <algorithm>
#include <vector>

#include <mpi.h>

namespace minimd {

constexpr int kSwaps = 6;  // two in each direction; later ones pass on ghosts of earlier ones

struct Swap {
  int to, from;  // ranks
  int dimension;
  double shift;                // added to positions that cross the end of the box
  int first_send, send_count;  // part of the list of atoms to send
  int first_ghost, ghost_count;
};

inline void forward(const Swap* swaps, int count, const int* send, double* x, int rank, std::vector<double>& buffer) {
  for (int s = 0; s < count; ++s) {
    const Swap& swap = swaps[s];
    const bool alone = swap.to == rank;
    if (!alone) buffer.resize(3 * std::size_t(swap.send_count));
    double* const ghosts = x + 3 * std::size_t(swap.first_ghost);
    double* out = alone ? ghosts : buffer.data();
    for (int k = 0; k < swap.send_count; ++k) {
      const double* from = x + 3 * std::size_t(send[swap.first_send + k]);
      for (int d = 0; d < 3; ++d) *out++ = from[d] + (d == swap.dimension ? swap.shift : 0.0);
    }
    if (alone) continue;
    MPI_Sendrecv(buffer.data(), 3 * swap.send_count, MPI_DOUBLE, swap.to, s, ghosts, 3 * swap.ghost_count, MPI_DOUBLE,
                 swap.from, s, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

inline void reverse(const Swap* swaps, const int* send, double* f, int rank, std::vector<double>& buffer) {
  for (int s = kSwaps - 1; s >= 0; --s) {
    const Swap& swap = swaps[s];
    const bool alone = swap.to == rank;
    double* const ghosts = f + 3 * std::size_t(swap.first_ghost);
    if (!alone) {
      buffer.resize(3 * std::size_t(swap.send_count));
      MPI_Sendrecv(ghosts, 3 * swap.ghost_count, MPI_DOUBLE, swap.from, kSwaps + s, buffer.data(), 3 * swap.send_count,
                   MPI_DOUBLE, swap.to, kSwaps + s, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    const double* in = alone ? ghosts : buffer.data();
    for (int k = 0; k < swap.send_count; ++k) {
      double* to = f + 3 * std::size_t(send[swap.first_send + k]);
      for (int d = 0; d < 3; ++d) to[d] += *in++;
    }
  }
}

}  // namespace minimd
