// SPDX-License-Identifier: BSD-3-Clause
// Probes: they show the length of a message, not that of its ticket.
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/messages/office.hpp"
#include "mpi/native/handlers.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

// nullptr: the probe is native, as no ticket can come there. What is wrong is the library's, too: its error handler must
// not be called under a lock of ours.
RouteRef route_to(int from, int tag, MPI_Comm comm) {
  if (!office.may_reach(from) || (tag != MPI_ANY_TAG && !good_tag(tag))) return nullptr;
  try {
    RouteRef route = office.routes.find_intra(comm);
    const bool comes = route != nullptr && (from == MPI_ANY_SOURCE || route->world_rank(from) >= 0);
    return comes ? route : nullptr;
  } catch (const std::exception&) {
    return nullptr;
  }
}

int improbe(int from, int tag, MPI_Comm comm, const RouteRef& route, int* found, MPI_Message* message,
            MPI_Status* status) {
  try {
    Matched matched;
    const int code = office.kept_messages.match(from, tag, route, comm, found, &matched);
    if (code != MPI_SUCCESS || *found == 0) return code;
    *message = matched.message;
    show(matched.status, status);
    if (matched.message != MPI_MESSAGE_NO_PROC) office.kept_messages.hand_out(matched);
    return code;
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
}

int iprobe(int from, int tag, MPI_Comm comm, const RouteRef& route, int* found, MPI_Status* status) {
  try {
    return office.kept_messages.probe(from, tag, route, comm, found, status);
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
}

// What a native probe that waits would find, another thread of ours may have taken out meanwhile: so we look ourselves.
template <typename Probe>
int until_found(Probe&& probe) {
  Waiter waiter;
  for (int found = 0;; waiter.poll()) {
    const int code = probe(&found);
    if (code != MPI_SUCCESS || found != 0) return code;
    offloader.progress();
  }
}

}  // namespace

namespace handlers {

int Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  const RouteRef route = route_to(from, tag, comm);
  return route == nullptr ? native.Iprobe(from, tag, comm, found, status)
                          : iprobe(from, tag, comm, route, found, status);
}

int Probe(int from, int tag, MPI_Comm comm, MPI_Status* status) {
  const RouteRef route = route_to(from, tag, comm);
  if (route == nullptr) return native.Probe(from, tag, comm, status);
  return until_found([&](int* found) { return iprobe(from, tag, comm, route, found, status); });
}

int Improbe(int from, int tag, MPI_Comm comm, int* found, MPI_Message* message, MPI_Status* status) {
  const RouteRef route = route_to(from, tag, comm);
  return route == nullptr ? native.Improbe(from, tag, comm, found, message, status)
                          : improbe(from, tag, comm, route, found, message, status);
}

int Mprobe(int from, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  const RouteRef route = route_to(from, tag, comm);
  if (route == nullptr) return native.Mprobe(from, tag, comm, message, status);
  return until_found([&](int* found) { return improbe(from, tag, comm, route, found, message, status); });
}

}  // namespace handlers
}  // namespace offpath::mpi
