// SPDX-License-Identifier: BSD-3-Clause
// Counts what a program calls beside nonblocking collectives and operations on windows, so that its line of statistics
// names it. What Offpath itself calls is not counted.
#pragma once

namespace offpath::mpi {

// Around the handlers in the table, of which null ones mean the native function.
void count_calls(void** handlers);

}  // namespace offpath::mpi
