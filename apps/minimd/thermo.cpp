// SPDX-License-Identifier: BSD-3-Clause
#include "thermo.hpp"

#include <mpi.h>

namespace minimd {
namespace {

double square_sum(const Atoms& atoms) {
  double sum = 0;
  for (int i = 0; i < 3 * atoms.local; ++i) sum += atoms.v[i] * atoms.v[i];
  return sum;
}

double freedoms(std::int64_t total) { return 3.0 * double(total) - 3.0; }

}  // namespace

double measure_temperature(const Atoms& atoms, std::int64_t total) {
  double sum = square_sum(atoms);
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / freedoms(total);
}

Thermo measure(int step, const Atoms& atoms, const Sums& own, std::int64_t total, double volume) {
  double sums[3] = {square_sum(atoms), own.energy, own.virial};
  MPI_Allreduce(MPI_IN_PLACE, sums, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const double potential = sums[1] / double(total);
  return {step, sums[0] / freedoms(total), potential, (sums[0] + sums[2]) / (3 * volume),
          potential + 0.5 * sums[0] / double(total)};
}

}  // namespace minimd
