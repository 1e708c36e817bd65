// SPDX-License-Identifier: BSD-3-Clause
// Receives. The native one matches; if what it has brought is a ticket, the payload takes its place: before a blocking
// call returns, or in the call that completes the request.
#include "mpi/messages/office.hpp"
#include "mpi/messages/tracked.hpp"
#include "mpi/native/handlers.hpp"

#include <exception>

namespace offpath::mpi {
namespace {

bool may_get_ticket(int64_t count, MPI_Datatype type, int from) {
  return office.on() && from != MPI_PROC_NULL && !Inside::here() && ReceivedElements::hold_a_ticket(count, type);
}

// An intercommunicator's receives get none.
RouteRef route_of(MPI_Comm comm) {
  RouteRef route = routes.find(comm);
  return route == nullptr || route->world.empty() ? nullptr : route;
}

// `receive`: the native call, given a status. Its tail if it may get a ticket.
template <typename Receive>
int receive_now(void* buffer, int64_t count, MPI_Datatype type, MPI_Comm comm, MPI_Status* given, Receive&& receive) {
  MPI_Status own;
  MPI_Status* const status = given == MPI_STATUS_IGNORE ? &own : given;
  const int code = receive(status);
  if (code != MPI_SUCCESS) return code;
  int ours = MPI_SUCCESS;
  try {
    const RouteRef route = route_of(comm);
    if (route == nullptr) return code;
    ReceivedElements elements(buffer, count, type);
    ours = receive_payload(*route, elements, status);
  } catch (const std::exception&) {
    ours = MPI_ERR_NO_MEM;
  }
  return ours == MPI_SUCCESS ? code : raise_error(comm, ours);
}

// Remembers what a native call has started. The call itself has not failed, so this must not: without memory the
// program cannot go on rightly.
int track(int code, void* buffer, int64_t count, MPI_Datatype type, MPI_Comm comm, const MPI_Request* request,
          bool persistent) {
  if (code != MPI_SUCCESS) return code;
  try {
    RouteRef route = route_of(comm);
    if (route == nullptr) return code;
    ReceivedElements elements(buffer, count, type);
    int kept = MPI_SUCCESS;
    {
      const Inside inside;
      kept = elements.keep();
    }
    if (kept != MPI_SUCCESS) return raise_error(comm, kept);
    auto made = std::make_shared<TrackedReceive>(std::move(route), std::move(elements));
    made->persistent = persistent;
    made->active = !persistent;
    tracked.add(*request, std::move(made));
  } catch (const std::exception&) {
    return raise_error(comm, MPI_ERR_NO_MEM);
  }
  return code;
}

}  // namespace

namespace handlers {

int Recv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  if (!may_get_ticket(count, type, from)) return native.Recv(buffer, count, type, from, tag, comm, status);
  return receive_now(buffer, count, type, comm, status,
                     [&](MPI_Status* used) { return native.Recv(buffer, count, type, from, tag, comm, used); });
}

int Irecv(void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  const int code = native.Irecv(buffer, count, type, from, tag, comm, request);
  if (!may_get_ticket(count, type, from)) return code;
  return track(code, buffer, count, type, comm, request, false);
}

}  // namespace handlers
}  // namespace offpath::mpi
