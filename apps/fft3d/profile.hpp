// Where a rank's time went, in the rows of the table that is printed.
#pragma once

#include <array>

#include <mpi.h>

namespace fft3d {

enum class Row { Ialltoallv, Waitany, Other };
constexpr int kRows = 3;

class Profile {
 public:
  // Runs call() and charges its time to row.
  template <class Call>
  void charge(Row row, Call call) {
    const double start = MPI_Wtime();
    call();
    seconds_[static_cast<int>(row)] += MPI_Wtime() - start;
  }
  double seconds(Row row) const { return seconds_[static_cast<int>(row)]; }
  double communication() const { return seconds_[0] + seconds_[1] + seconds_[2]; }

 private:
  std::array<double, kRows> seconds_{};
};

struct Spread {
  double avg, min, max;
};
// Over the ranks of communicator, on all of them.
Spread spread(double seconds, MPI_Comm communicator);

}  // namespace fft3d
