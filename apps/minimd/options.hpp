// SPDX-License-Identifier: BSD-3-Clause
// Command line of minimd.
#pragma once

#include <string>

namespace minimd {

enum class Schedule { host, relaxed, offpath, hybrid };
enum class Guard { automatic, on, off };

struct Options {
  int cells = 20;
  int steps = 100;
  int every = 20;
  int thermo = 100;
  int warm_up = 0;
  double skin = 0.3;
  Schedule schedule = Schedule::host;
  Guard guard = Guard::automatic;
  int share = 0;    // percent of an ordinary step's pairs that are the other side's; 0: found out
  int threads = 1;  // of the other side
  int repeats = 1;  // of each of its forces
  std::string json, field;
  std::string help;  // to be shown instead of running

  static constexpr double kCutoff = 2.5, kDensity = 0.8442, kTemperature = 1.44, kTimeStep = 0.005;
  double reach() const { return kCutoff + skin; }
  bool guarded() const { return guard == Guard::on || (guard == Guard::automatic && schedule != Schedule::host); }
};

// Empty when the arguments are good, else one line for the user.
std::string parse_options(int argc, char** argv, Options& options);

const char* name(Schedule schedule);

}  // namespace minimd
