// The table, the verification line and the JSON file of rank 0.
#pragma once

#include <cstdint>
#include <string>

#include "options.hpp"
#include "profile.hpp"
#include "verify.hpp"

namespace fft3d {

struct Times {
  Spread application, communication, ialltoallv, waitany, other;
};

struct Outcome {
  int ranks;
  Times times;
  Errors errors;
  double energy;  // kinetic, per unit volume, at the end
  std::uint64_t checksum;
  std::size_t bytes_per_peer;  // smallest message between two different ranks
};

// On all ranks.
Times gather_times(double application, const Profile& profile, MPI_Comm communicator);

void print_report(const Options& options, const Outcome& outcome);
// Empty, or one line for the user.
std::string write_json(const Options& options, const Outcome& outcome);

}  // namespace fft3d
