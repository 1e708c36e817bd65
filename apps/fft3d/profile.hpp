// Where a rank's time went, in the rows of the table that is printed.
#pragma once

#include <mpi.h>

#include "../report/phase_times.hpp"

namespace fft3d {

enum class Row { Ialltoallv, Waitany, Other };
constexpr int kRows = 3;

using Profile = report::PhaseTimes<Row, kRows>;

struct Spread {
  double avg, min, max;
};
// Over the ranks of communicator, on all of them.
Spread spread(double seconds, MPI_Comm communicator);

}  // namespace fft3d
