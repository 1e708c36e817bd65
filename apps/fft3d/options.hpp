// Command line of fft3d.
#pragma once

#include <string>

namespace fft3d {

struct Options {
  int nx = 64, ny = 64, nz = 64;
  int variables = 4;
  int repeats = 4;
  int work = 0;
  std::string json, field;
  std::string help;  // to be shown instead of running
};

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

}  // namespace fft3d
