// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/calls/call.hpp"

namespace offpath::mpi {

bool Call::keep(Side& side, Stated* stated, int entries) {
  // Messages are started before the caller has anything back.
  if (use == Use::once && !uses_service() && !is_behind) return true;
  if (side.hold() != MPI_SUCCESS) return false;
  // What goes pairwise is never given to a native collective.
  if (!pairwise && stated != nullptr) side.keep(stated, entries);
  return true;
}

}  // namespace offpath::mpi
