// SPDX-License-Identifier: BSD-3-Clause
// Persistent collectives for a library that has none (MPICH 3): the doorway exports them with any library, and programs
// that look for them at run time use what they find.
//
// The application holds a persistent request of the library's that is never started: a receive from nobody. Each start
// makes a nonblocking collective, which stands in for it in the functions that take requests. It goes over a
// communicator of its own, as ranks may start theirs in different orders.
#pragma once

namespace offpath::mpi {

struct Native;

// Gives what `functions` lacks its substitute; then also those that take requests know of them.
void add_stand_ins(Native* functions);

}  // namespace offpath::mpi
