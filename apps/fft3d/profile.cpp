#include "profile.hpp"

namespace fft3d {

Spread spread(double seconds, MPI_Comm communicator) {
  int ranks = 1;
  MPI_Comm_size(communicator, &ranks);
  Spread result{};
  MPI_Allreduce(&seconds, &result.avg, 1, MPI_DOUBLE, MPI_SUM, communicator);
  MPI_Allreduce(&seconds, &result.min, 1, MPI_DOUBLE, MPI_MIN, communicator);
  MPI_Allreduce(&seconds, &result.max, 1, MPI_DOUBLE, MPI_MAX, communicator);
  result.avg /= ranks;
  return result;
}

}  // namespace fft3d
