// SPDX-License-Identifier: BSD-3-Clause
// What the user wants of one communicator: by the info key `offpath_path`, or by the communicator's name in
// OFFPATH_MPI_COMM_POLICY. What rank 0 of the communicator says counts.
#pragma once

#include "base/result.hpp"

#include <mpi.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace offpath::mpi {

// automatic: as the job does. freeze: as it is decided now, without looking further.
enum class Preference : uint8_t { automatic, host, dpu, freeze };

std::optional<Preference> parse_preference(std::string_view word);
// Of the info key; nothing: it is not there, or no word we know. Inside.
std::optional<Preference> read_preference(MPI_Info info);
// What this rank sends on a communicator or in a window is compressed so, by the info key `offpath_compress`; empty: it is not
// there. Ranks may differ: who sends decides. Inside.
std::string read_compress(MPI_Info info);
// Nothing on rank 0: nothing. The same on all ranks. Collective over `comm`. Inside.
std::optional<Preference> agree_on_preference(MPI_Comm comm, std::optional<Preference> own);

// "name=host,other=freeze". Pure.
class NamedPreferences {
 public:
  static base::Result<NamedPreferences> parse(std::string_view text);
  std::optional<Preference> find(std::string_view name) const;
  bool empty() const { return entries_.empty(); }

 private:
  struct Entry {
    std::string name;
    Preference preference;
  };
  std::vector<Entry> entries_;
};

}  // namespace offpath::mpi
