#include "options.hpp"

#include <charconv>
#include <cstring>

namespace fft3d {
namespace {

// Modes up to 2 must be distinct from their aliases for the closed form to hold.
constexpr int kSmallestGrid = 5;

bool parse_int(const std::string& text, int& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && stop == end;
}

}  // namespace

const char* usage() {
  return "usage: fft3d [--n N | --nx N --ny N --nz N] [--variables V] [--repeats R] [--work K] [--json FILE]\n"
         "\n"
         "3-D real-to-complex Fourier transforms of a Taylor-Green vortex (velocity u, v, w and pressure), slabs over\n"
         "the ranks, one transpose per variable in flight at a time (MPI_Ialltoallv, MPI_Waitany).\n"
         "\n"
         "  --n N           grid points in each direction (64); --nx, --ny, --nz set one direction\n"
         "  --variables V   fields transformed together, 1 to 16 (4: u v w p, further ones repeat them)\n"
         "  --repeats R     timed iterations, each forward, pointwise step, inverse (4)\n"
         "  --work K        Runge-Kutta steps of the pointwise terms in each iteration (0: transforms only):\n"
         "                  friction in physical space, advection by a mean wind and diffusion in Fourier space\n"
         "  --json FILE     rank 0 writes times and checksum there\n";
}

std::string parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      options.help = true;
      return {};
    }
    const bool known = name == "--n" || name == "--nx" || name == "--ny" || name == "--nz" || name == "--variables" ||
                       name == "--repeats" || name == "--work" || name == "--json";
    if (!known) return "unknown option '" + name + "' (nothing was run). Use --help to see the options";
    if (i + 1 == argc) return "option " + name + " has no value (each option takes one). Use " + name + " VALUE";
    const std::string text = argv[++i];
    if (name == "--json") {
      options.json = text;
      continue;
    }
    const bool grid = name[2] == 'n';
    const int lowest = grid ? kSmallestGrid : name == "--work" ? 0 : 1;
    const int highest = grid ? 8192 : name == "--variables" ? 16 : 1000000;
    int value = 0;
    if (!parse_int(text, value) || value < lowest || value > highest) {
      return name + " '" + text + "' is not usable (a whole number from " + std::to_string(lowest) + " to " +
             std::to_string(highest) + " is needed). Give another value";
    }
    if (name == "--n") options.nx = options.ny = options.nz = value;
    if (name == "--nx") options.nx = value;
    if (name == "--ny") options.ny = value;
    if (name == "--nz") options.nz = value;
    if (name == "--variables") options.variables = value;
    if (name == "--repeats") options.repeats = value;
    if (name == "--work") options.work = value;
  }
  return {};
}

}  // namespace fft3d
