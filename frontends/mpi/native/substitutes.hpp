// SPDX-License-Identifier: BSD-3-Clause
// Large-count functions for a library that has none: they call its functions that count in int. The doorway exports
// them with any library, and programs that look for them at run time use what they find.
//
// What an int does not count: elements go as a derived type; reductions and arrays of counts are refused
// (MPI_ERR_COUNT).
#pragma once

namespace offpath::mpi {

struct Native;

// Gives what `functions` lacks its substitute, if the function without large counts is there.
void add_substitutes(Native* functions);

}  // namespace offpath::mpi
