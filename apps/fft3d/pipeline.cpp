#include "pipeline.hpp"

#include <algorithm>
#include <bit>
#include <numbers>

namespace fft3d {

Pipeline::Pipeline(const Slab& slab, int variables, MPI_Comm communicator)
    : slab_(slab), communicator_(communicator), transform_(slab), requests_(variables, MPI_REQUEST_NULL) {
  for (int z = 0; z < slab.nz; ++z) kz_.push_back(wave_number(z, slab.nz));
  constexpr double kPeriod = 2 * std::numbers::pi;
  for (int v = 0; v < variables; ++v) {
    Variable variable{MPI_COMM_NULL, Stage::Forward, fftw_array<double>(slab.points()),
                      fftw_array<Complex>(slab.planes_complex()), fftw_array<Complex>(slab.modes())};
    // Waitany finishes variables in an order of its own on each rank, and collectives must be called in one order on
    // all: a communicator per variable keeps every order right.
    MPI_Comm_dup(communicator, &variable.communicator);
    double* value = variable.field.get();
    for (int z = 0; z < slab.z.size; ++z)
      for (int y = 0; y < slab.ny; ++y)
        for (int x = 0; x < slab.nx; ++x)
          *value++ = taylor_green_value(v, kPeriod * x / slab.nx, kPeriod * y / slab.ny,
                                        kPeriod * (slab.z.begin + z) / slab.nz);
    variables_.push_back(std::move(variable));
  }
}

Pipeline::~Pipeline() {
  for (Variable& variable : variables_) MPI_Comm_free(&variable.communicator);
}

void Pipeline::post(int index, Stage stage, Profile& profile) {
  Variable& v = variables_[index];
  v.stage = stage;
  profile.charge(Row::Ialltoallv, [&] {
    if (stage == Stage::Forward) {
      MPI_Ialltoallv(v.physical.get(), slab_.physical_counts.data(), slab_.physical_displs.data(), MPI_C_DOUBLE_COMPLEX,
                     v.fourier.get(), slab_.fourier_counts.data(), slab_.fourier_displs.data(), MPI_C_DOUBLE_COMPLEX,
                     v.communicator, &requests_[index]);
    } else {
      MPI_Ialltoallv(v.fourier.get(), slab_.fourier_counts.data(), slab_.fourier_displs.data(), MPI_C_DOUBLE_COMPLEX,
                     v.physical.get(), slab_.physical_counts.data(), slab_.physical_displs.data(), MPI_C_DOUBLE_COMPLEX,
                     v.communicator, &requests_[index]);
    }
  });
}

void Pipeline::pointwise(const TimeStep& time_step, int iteration) {
  if (time_step.steps() == 0) return;
  for (int y = 0; y < slab_.y.size; ++y) {
    const int ky = wave_number(slab_.y.begin + y, slab_.ny);
    for (int kx = 0; kx < slab_.hx; ++kx) {
      time_step.wind_and_diffusion(iteration, kx, ky, kz_.data(), transform_.line(y, kx), kz_.size());
    }
  }
}

void Pipeline::iterate(const TimeStep& time_step, int iteration, Profile& profile, const Look& look) {
  const int count = variables();
  for (int v = 0; v < count; ++v) {
    time_step.friction(iteration, Half::first, variables_[v].field.get(), slab_.points());
    transform_.forward_planes(variables_[v].field.get(), variables_[v].physical.get());
    post(v, Stage::Forward, profile);
  }
  const double scale = 1.0 / (double(slab_.nx) * slab_.ny * slab_.nz);
  for (int done = 0; done < 2 * count; ++done) {
    int v = MPI_UNDEFINED;
    profile.charge(Row::Waitany, [&] { MPI_Waitany(count, requests_.data(), &v, MPI_STATUS_IGNORE); });
    Variable& variable = variables_[v];
    if (variable.stage == Stage::Forward) {
      transform_.forward_lines(variable.fourier.get());
      for (Complex& value : transform_.spectrum()) value *= scale;
      if (look) look(v);
      pointwise(time_step, iteration);
      transform_.inverse_lines(variable.fourier.get());
      post(v, Stage::Inverse, profile);
    } else {
      transform_.inverse_planes(variable.physical.get(), variable.field.get());
      time_step.friction(iteration, Half::second, variable.field.get(), slab_.points());
    }
  }
}

double Pipeline::local_kinetic_sum() const {
  double sum = 0;
  for (int v = 0; v < std::min(variables(), 3); ++v) {
    const double* values = field(v);
    for (std::size_t i = 0; i < slab_.points(); ++i) sum += values[i] * values[i];
  }
  return sum / 2;
}

std::uint64_t Pipeline::checksum() const {
  const std::uint64_t first = std::uint64_t(slab_.z.begin) * slab_.ny * slab_.nx;
  std::uint64_t local = 0;
  for (int v = 0; v < variables(); ++v) {
    for (std::size_t i = 0; i < slab_.points(); ++i) {
      // splitmix64 of value and place; a sum, because ranks may come in any order.
      std::uint64_t x = std::bit_cast<std::uint64_t>(field(v)[i]) + 0x9e3779b97f4a7c15u * (first + i + 1) + v;
      x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
      x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
      local += x ^ (x >> 31);
    }
  }
  std::uint64_t total = 0;
  MPI_Allreduce(&local, &total, 1, MPI_UINT64_T, MPI_SUM, communicator_);
  return total;
}

}  // namespace fft3d
