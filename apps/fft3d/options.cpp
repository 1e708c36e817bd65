#include "options.hpp"

#include "arguments/arguments.hpp"

namespace fft3d {
namespace {

// Modes up to 2 must be distinct from their aliases for the closed form to hold.
constexpr int kSmallestGrid = 5;
constexpr int kLargestGrid = 8192;

}  // namespace

std::string parse_options(int argc, char** argv, Options& options) {
  int all = options.nx, x = 0, y = 0, z = 0;  // 0: not given
  arguments::Arguments known(
      "fft3d",
      "3-D real-to-complex Fourier transforms of a Taylor-Green vortex (velocity u, v, w and pressure), slabs over\n"
      "the ranks, one transpose per variable in flight at a time (MPI_Ialltoallv, MPI_Waitany).");
  known.number("--n", all, kSmallestGrid, kLargestGrid, "grid points in each direction");
  known.number("--nx", x, kSmallestGrid, kLargestGrid, "in the first");
  known.number("--ny", y, kSmallestGrid, kLargestGrid, "in the second");
  known.number("--nz", z, kSmallestGrid, kLargestGrid, "in the third");
  known.number("--variables", options.variables, 1, 16,
               "fields transformed together (4: u v w p, further ones repeat them)");
  known.number("--repeats", options.repeats, 1, 1000000, "timed iterations, each forward, pointwise step, inverse");
  known.number("--work", options.work, 0, 1000000,
               "Runge-Kutta steps of the pointwise terms in each iteration (0: transforms only): friction in physical "
               "space, advection by a mean wind and diffusion in Fourier space");
  known.text("--json", options.json, "rank 0 writes times and checksum to that file");
  known.text("--field", options.field, "rank 0 writes what it transforms there, as doubles");
  const std::string problem = known.parse(argc, argv);
  options.help = known.help();
  options.nx = x != 0 ? x : all;
  options.ny = y != 0 ? y : all;
  options.nz = z != 0 ? z : all;
  return problem;
}

}  // namespace fft3d
