#include "report.hpp"

#include <cstdio>
#include <cstring>

#include <nlohmann/json.hpp>

#include "../report/hex.hpp"
#include "../report/json_file.hpp"

namespace fft3d {
namespace {

constexpr struct {
  const char* name;
  Spread Times::*spread;
} kTableRows[] = {
    {"Application", &Times::application},
    {"All communications", &Times::communication},
    {"MPI_Ialltoallv", &Times::ialltoallv},
    {"MPI_Waitany", &Times::waitany},
    {"Other", &Times::other},
};

}  // namespace

Times gather_times(double application, const Profile& profile, MPI_Comm communicator) {
  return {spread(application, communicator), spread(profile.all(), communicator),
          spread(profile.seconds(Row::Ialltoallv), communicator), spread(profile.seconds(Row::Waitany), communicator),
          spread(profile.seconds(Row::Other), communicator)};
}

void print_report(const Options& o, const Outcome& outcome) {
  std::printf(
      "fft3d: %d x %d x %d, %d variables, %d ranks, %d repeats, %d steps each, %.2f MiB per peer and transpose\n", o.nx,
      o.ny, o.nz, o.variables, outcome.ranks, o.repeats, o.work, outcome.bytes_per_peer / 1048576.0);
  std::printf("%-20s %12s\n", "seconds per process", "average");
  for (const auto& row : kTableRows) std::printf("%-20s %12.4f\n", row.name, (outcome.times.*row.spread).avg);
  const Errors& e = outcome.errors;
  std::printf("verified: %s (max forward error %.1e, inverse error %.1e, energy error %.1e)\n", e.good() ? "yes" : "no",
              e.forward, e.inverse, e.energy);
  std::fflush(stdout);
}

std::string write_json(const Options& o, const Outcome& outcome) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(version, &length);
  std::string library(version, length);
  library.resize(std::strlen(library.c_str()));
  nlohmann::ordered_json json;
  json["n"] = {o.nx, o.ny, o.nz};
  json["variables"] = o.variables;
  json["ranks"] = outcome.ranks;
  json["repeats"] = o.repeats;
  json["work"] = o.work;
  json["bytes_per_peer"] = outcome.bytes_per_peer;
  json["verified"] = outcome.errors.good();
  json["errors"] = {
      {"forward", outcome.errors.forward}, {"inverse", outcome.errors.inverse}, {"energy", outcome.errors.energy}};
  json["kinetic_energy"] = outcome.energy;
  json["checksum"] = report::hex(outcome.checksum);
  for (const auto& row : kTableRows) {
    const Spread& s = outcome.times.*row.spread;
    json["times_s"][row.name] = {{"avg", s.avg}, {"min", s.min}, {"max", s.max}};
  }
  json["mpi"] = library.substr(0, library.find('\n'));
  return report::write_json(o.json, json);
}

}  // namespace fft3d
