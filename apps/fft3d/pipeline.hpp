// Several variables through forward transform, pointwise step and inverse transform, pipelined: while the transpose of
// one variable moves, the next is computed, and whichever transpose is finished first is continued first.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <mpi.h>

#include "../kit/clocks.hpp"
#include "slab.hpp"
#include "time_step.hpp"
#include "transform.hpp"

namespace fft3d {

// Where a rank's time went.
enum class Row { Ialltoallv, Waitany, Other };
using Profile = kit::PhaseTimes<Row, 3>;

class Pipeline {
 public:
  // Fills the variables with the Taylor-Green vortex.
  Pipeline(const Slab& slab, int variables, MPI_Comm communicator);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Called with the scaled spectrum of a variable in transform() before its pointwise step.
  using Look = std::function<void(int variable)>;

  // One forward, pointwise step and inverse of all variables.
  void iterate(const TimeStep& time_step, int iteration, Profile& profile, const Look& look = {});

  Transform& transform() { return transform_; }
  const double* field(int variable) const { return variables_[variable].field.get(); }
  int variables() const { return int(variables_.size()); }

  // Sum over the own points of (u^2 + v^2 + w^2) / 2, of the variables there are.
  double local_kinetic_sum() const;
  // The same for equal fields however the points are spread over ranks; every bit counts. On all ranks.
  std::uint64_t checksum() const;

 private:
  enum class Stage { Forward, Inverse };
  struct Variable {
    MPI_Comm communicator;
    Stage stage;
    FftwArray<double> field;
    FftwArray<Complex> physical, fourier;  // the two ends of the transpose
  };

  void post(int variable, Stage stage, Profile& profile);
  void pointwise(const TimeStep& time_step, int iteration);

  const Slab& slab_;
  MPI_Comm communicator_;
  Transform transform_;
  std::vector<int> kz_;
  std::vector<Variable> variables_;
  std::vector<MPI_Request> requests_;
};

}  // namespace fft3d
