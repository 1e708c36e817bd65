// SPDX-License-Identifier: BSD-3-Clause
// The functions that make communicators, say what is wanted of them, and free them.
#include "mpi/job/job.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/errors_return.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/made.hpp"

namespace offpath::mpi {
namespace handlers {
namespace {

template <auto function, typename... Arguments>
int adopt_made(MPI_Comm* place, Arguments... arguments) {
  Made<MPI_Comm> made(place);
  const int code = (native.*function)(arguments..., made.place());
  if (made.give(code, MPI_COMM_NULL)) adopt_communicator(*place);
  return code;
}

// The info may differ between the ranks, and MPI does not say that ours must not.
std::optional<Preference> stated_by_all(MPI_Comm comm, MPI_Info info) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  return agree_on_preference(comm, read_preference(info));
}

std::string compress_in(MPI_Info info) {
  const Inside inside;
  try {
    return read_compress(info);
  } catch (const std::exception&) {  // it is this rank's own, and only a wish
    return {};
  }
}

}  // namespace

int Comm_dup(MPI_Comm comm, MPI_Comm* made) { return adopt_made<&Native::Comm_dup>(made, comm); }

int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  Made<MPI_Comm> copy(made);
  const int code = native.Comm_dup_with_info(comm, info, copy.place());
  const bool is_made = copy.give(code, MPI_COMM_NULL);
  if (!is_made || !job.active() || Inside::here() || count_nodes(*made) == 0) return code;
  adopt_communicator(*made, stated_by_all(*made, info).value_or(Preference::automatic), compress_in(info));
  return code;
}

int Comm_set_info(MPI_Comm comm, MPI_Info info) {
  const int code = native.Comm_set_info(comm, info);
  Lane* const lane = code != MPI_SUCCESS || !job.active() || Inside::here() ? nullptr : offloader.find_lane(comm);
  if (lane == nullptr) return code;
  if (const auto preference = stated_by_all(comm, info)) lane->adapter().prefer(*preference);
  if (const std::string wish = compress_in(info); !wish.empty()) offloader.compress(*lane, wish);
  return code;
}

int Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* made) {
  return adopt_made<&Native::Comm_split>(made, comm, color, key);
}

int Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return adopt_made<&Native::Comm_split_type>(made, comm, type, key, info);
}

int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return adopt_made<&Native::Comm_create>(made, comm, group);
}

int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return adopt_made<&Native::Comm_create_group>(made, comm, group, tag);
}

int Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm* made) {
  return adopt_made<&Native::Cart_create>(made, comm, dimensions, sizes, periods, reorder);
}

int Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm* made) {
  return adopt_made<&Native::Cart_sub>(made, comm, remain);
}

int Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm* made) {
  return adopt_made<&Native::Graph_create>(made, comm, nodes, index, edges, reorder);
}

int Dist_graph_create(MPI_Comm comm, int count, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int reorder, MPI_Comm* made) {
  return adopt_made<&Native::Dist_graph_create>(made, comm, count, sources, degrees, destinations, weights, info,
                                                reorder);
}

int Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int sources[], const int source_weights[],
                               int out_degree, const int destinations[], const int destination_weights[], MPI_Info info,
                               int reorder, MPI_Comm* made) {
  return adopt_made<&Native::Dist_graph_create_adjacent>(made, comm, in_degree, sources, source_weights, out_degree,
                                                         destinations, destination_weights, info, reorder);
}

int Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return adopt_made<&Native::Intercomm_merge>(made, comm, high);
}

// Programs may find these here at run time, and not in the library.
int Comm_shrink(MPI_Comm comm, MPI_Comm* made) {
  return native.Comm_shrink == nullptr ? MPI_ERR_OTHER : adopt_made<&Native::Comm_shrink>(made, comm);
}

int Comm_revoke(MPI_Comm comm) {
  if (native.Comm_revoke == nullptr) return MPI_ERR_OTHER;
  const int code = native.Comm_revoke(comm);
  const bool has_lanes = job.active() && !Inside::here() && native.tells_of_losses();
  if (code == MPI_SUCCESS && has_lanes) offloader.revoke(comm);
  return code;
}

int Comm_free(MPI_Comm* comm) {
  const int code = native.Comm_free(comm);
  if (job.active() && !Inside::here()) offloader.retire();
  return code;
}

int Comm_disconnect(MPI_Comm* comm) {
  const int code = native.Comm_disconnect(comm);
  if (job.active() && !Inside::here()) offloader.retire();
  return code;
}

}  // namespace handlers
}  // namespace offpath::mpi
