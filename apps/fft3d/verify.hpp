// Compares a pipeline with the closed form of the Taylor-Green vortex, as it was and as the time steps changed it.
#pragma once

#include <vector>

#include <mpi.h>

#include "pipeline.hpp"

namespace fft3d {

struct Errors {
  double forward = 0;  // largest difference of a Fourier coefficient
  double inverse = 0;  // largest difference of a field value
  double energy = 0;   // largest difference of a variable's mean square, in Fourier and in physical space
  static constexpr double kAllowed = 1e-11;  // fields are of order 1, about 1e-15 is usual
  bool good() const { return forward < kAllowed && inverse < kAllowed && energy < kAllowed; }
  void include(const Errors& other);
};

class Verifier {
 public:
  Verifier(const Slab& slab, int variables, MPI_Comm communicator);

  // Follows an iteration that the pipeline ran unwatched.
  void skip(const TimeStep& time_step, int iteration);
  // Runs one iteration of the pipeline and looks at every coefficient and every value. Collective, the same everywhere.
  Errors run(Pipeline& pipeline, const TimeStep& time_step, int iteration);

 private:
  void friction(const TimeStep& time_step, int iteration, Half half);
  void wind_and_diffusion(const TimeStep& time_step, int iteration);
  double mean_square(int variable) const;
  double spectrum_difference(Transform& transform, int variable, double& energy) const;
  double field_difference(const double* field, int variable, double& energy) const;

  const Slab& slab_;
  MPI_Comm communicator_;
  std::vector<std::vector<Mode>> modes_;  // [variable]
};

}  // namespace fft3d
