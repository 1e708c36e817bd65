// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cstdio>

#include "../kit/report.hpp"

namespace fft3d {

std::string report(const Options& o, const Outcome& outcome) {
  std::printf(
      "fft3d: %d x %d x %d, %d variables, %d ranks, %d repeats, %d steps each, %.2f MiB per peer and transpose\n", o.nx,
      o.ny, o.nz, o.variables, kit::ranks(), o.repeats, o.work, outcome.bytes_per_peer / 1048576.0);
  kit::Json times;
  std::printf("%-20s %12s\n", "seconds per process", "average");
  for (const auto& [name, spread] : outcome.times) {
    std::printf("%-20s %12.4f\n", name, spread.avg);
    times[name] = {{"avg", spread.avg}, {"min", spread.min}, {"max", spread.max}};
  }
  std::printf("longest wait: %.4f s\n", outcome.longest_wait);
  const Errors& e = outcome.errors;
  std::printf("verified: %s (max forward error %.1e, inverse error %.1e, energy error %.1e)\n", e.good() ? "yes" : "no",
              e.forward, e.inverse, e.energy);
  std::fflush(stdout);
  return kit::write_json(o.json, {{"n", {o.nx, o.ny, o.nz}},
                                  {"variables", o.variables},
                                  {"ranks", kit::ranks()},
                                  {"repeats", o.repeats},
                                  {"work", o.work},
                                  {"bytes_per_peer", outcome.bytes_per_peer},
                                  {"verified", e.good()},
                                  {"errors", {{"forward", e.forward}, {"inverse", e.inverse}, {"energy", e.energy}}},
                                  {"kinetic_energy", outcome.energy},
                                  {"checksum", kit::hex(outcome.checksum)},
                                  {"times_s", times},
                                  {"longest_wait_s", outcome.longest_wait},
                                  {"mpi", kit::library()}});
}

}  // namespace fft3d
