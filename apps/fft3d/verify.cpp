#include "verify.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace fft3d {
namespace {

int index_of(int k, int n) { return k >= 0 ? k : k + n; }

// NaN must never pass for a small difference.
double worse(double a, double b) { return b <= a ? a : b; }

std::vector<Complex> waves(int k, int n) {
  std::vector<Complex> values(n);
  for (int i = 0; i < n; ++i) values[i] = std::polar(1.0, 2 * std::numbers::pi * k * i / n);
  return values;
}

}  // namespace

void Errors::include(const Errors& other) {
  forward = worse(forward, other.forward);
  inverse = worse(inverse, other.inverse);
  energy = worse(energy, other.energy);
}

Verifier::Verifier(const Slab& slab, int variables, MPI_Comm communicator) : slab_(slab), communicator_(communicator) {
  for (int v = 0; v < variables; ++v) modes_.push_back(taylor_green_modes(v));
}

void Verifier::friction(const TimeStep& time_step, int iteration, Half half) {
  double factor = 1;
  time_step.friction(iteration, half, &factor, 1);
  for (auto& modes : modes_)
    for (Mode& mode : modes) mode.coefficient *= factor;
}

void Verifier::wind_and_diffusion(const TimeStep& time_step, int iteration) {
  for (auto& modes : modes_)
    for (Mode& mode : modes) time_step.wind_and_diffusion(iteration, mode.kx, mode.ky, &mode.kz, &mode.coefficient, 1);
}

void Verifier::skip(const TimeStep& time_step, int iteration) {
  friction(time_step, iteration, Half::first);
  wind_and_diffusion(time_step, iteration);
  friction(time_step, iteration, Half::second);
}

double Verifier::mean_square(int variable) const {
  double sum = 0;
  for (const Mode& mode : modes_[variable]) sum += std::norm(mode.coefficient);
  return sum;
}

double Verifier::spectrum_difference(Transform& transform, int variable, double& energy) const {
  double squares = 0;
  for (int y = 0; y < slab_.y.size; ++y)
    for (int kx = 0; kx < slab_.hx; ++kx) {
      const bool alone = kx == 0 || 2 * kx == slab_.nx;  // else -kx is not stored and counts as well
      const Complex* line = transform.line(y, kx);
      for (int z = 0; z < slab_.nz; ++z) squares += (alone ? 1 : 2) * std::norm(line[z]);
    }
  energy = squares;
  // The spectrum is scratch, but the inverse still needs it: what was taken away comes back at the end.
  std::vector<std::pair<Complex*, Complex>> kept;
  for (const Mode& mode : modes_[variable]) {
    const int y = index_of(mode.ky, slab_.ny) - slab_.y.begin;
    if (mode.kx < 0 || y < 0 || y >= slab_.y.size) continue;
    Complex* value = transform.line(y, mode.kx) + index_of(mode.kz, slab_.nz);
    kept.emplace_back(value, *value);
    *value -= mode.coefficient;
  }
  double difference = 0;
  for (const Complex& value : transform.spectrum()) difference = worse(difference, std::abs(value));
  for (const auto& [value, was] : kept) *value = was;
  return difference;
}

double Verifier::field_difference(const double* field, int variable, double& energy) const {
  struct Waves {
    Complex coefficient;
    std::vector<Complex> x, y, z;
  };
  std::vector<Waves> all;
  for (const Mode& m : modes_[variable])
    all.push_back({m.coefficient, waves(m.kx, slab_.nx), waves(m.ky, slab_.ny), waves(m.kz, slab_.nz)});
  double difference = 0;
  std::vector<Complex> at(all.size());
  for (int z = 0; z < slab_.z.size; ++z)
    for (int y = 0; y < slab_.ny; ++y) {
      for (std::size_t i = 0; i < all.size(); ++i)
        at[i] = all[i].coefficient * all[i].y[y] * all[i].z[slab_.z.begin + z];
      for (int x = 0; x < slab_.nx; ++x, ++field) {
        double expected = 0;
        for (std::size_t i = 0; i < all.size(); ++i)
          expected += at[i].real() * all[i].x[x].real() - at[i].imag() * all[i].x[x].imag();
        difference = worse(difference, std::abs(*field - expected));
        energy += *field * *field;
      }
    }
  return difference;
}

Errors Verifier::run(Pipeline& pipeline, const TimeStep& time_step, int iteration) {
  const int count = pipeline.variables();
  std::vector<double> energies(2 * count), expected(2 * count);
  double differences[2] = {0, 0};

  friction(time_step, iteration, Half::first);
  for (int v = 0; v < count; ++v) expected[v] = mean_square(v);
  Profile unused;
  pipeline.iterate(time_step, iteration, unused, [&](int v) {
    differences[0] = worse(differences[0], spectrum_difference(pipeline.transform(), v, energies[v]));
  });
  wind_and_diffusion(time_step, iteration);
  friction(time_step, iteration, Half::second);
  const double points = double(slab_.nx) * slab_.ny * slab_.nz;
  for (int v = 0; v < count; ++v) {
    expected[count + v] = mean_square(v);
    differences[1] = worse(differences[1], field_difference(pipeline.field(v), v, energies[count + v]));
    energies[count + v] /= points;
  }

  // MPI_MAX may drop a NaN; infinity says the same and survives.
  for (double& difference : differences)
    if (std::isnan(difference)) difference = HUGE_VAL;
  MPI_Allreduce(MPI_IN_PLACE, differences, 2, MPI_DOUBLE, MPI_MAX, communicator_);
  MPI_Allreduce(MPI_IN_PLACE, energies.data(), 2 * count, MPI_DOUBLE, MPI_SUM, communicator_);
  Errors errors{differences[0], differences[1], 0};
  for (int i = 0; i < 2 * count; ++i) errors.energy = worse(errors.energy, std::abs(energies[i] - expected[i]));
  return errors;
}

}  // namespace fft3d
