// SPDX-License-Identifier: BSD-3-Clause
// The recorder: a layer of handlers that record what was asked and how long it took, around what lies below them.
#pragma once

#include "mpi/native/native.hpp"

#include <string>

namespace offpath::mpi::recording {

// What a recording is for.
struct Purpose {
  const char* variable;  // of the environment: the files' path but for the rank
  const char* format;
  bool polls;                   // tests without result are recorded, too
  const char* sample_variable;  // of the environment: each how many-th operation is recorded; null: every one
  // Once MPI is initialized, before the first record: more members of the header's JSON object.
  std::string (*open)();
  // Once MPI is initialized: all ranks of the job record. Null: they do, as none could start otherwise.
  bool (*agreed)();
};

inline constexpr Purpose kProfile{"OFFPATH_PROFILE", "offpath-profile", true, nullptr, nullptr, nullptr};

// Puts the layer over the handlers in the table, of which null ones mean the native function. `purpose` must stay.
void install(void** handlers, const Purpose& purpose);

// What the doorway calls for <offpath/region.h>, on any thread, at any time.
void mark_region(const char* name, int begins);

}  // namespace offpath::mpi::recording
