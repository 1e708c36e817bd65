// SPDX-License-Identifier: BSD-3-Clause
// The functions that make communicators, say what is wanted of them, and free them.
#include "mpi/job/job.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/errors_return.hpp"
#include "mpi/native/handlers.hpp"

namespace offpath::mpi {
namespace handlers {
namespace {

int adopted(int code, const MPI_Comm* made) {
  if (code == MPI_SUCCESS) adopt_communicator(*made);
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

int Comm_dup(MPI_Comm comm, MPI_Comm* made) { return adopted(native.Comm_dup(comm, made), made); }

int Comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm* made) {
  const int code = native.Comm_dup_with_info(comm, info, made);
  if (code != MPI_SUCCESS || !job.active() || Inside::here() || count_nodes(*made) == 0) return code;
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
  return adopted(native.Comm_split(comm, color, key, made), made);
}

int Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* made) {
  return adopted(native.Comm_split_type(comm, type, key, info, made), made);
}

int Comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm* made) {
  return adopted(native.Comm_create(comm, group, made), made);
}

int Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made) {
  return adopted(native.Comm_create_group(comm, group, tag, made), made);
}

int Cart_create(MPI_Comm comm, int dimensions, const int sizes[], const int periods[], int reorder, MPI_Comm* made) {
  return adopted(native.Cart_create(comm, dimensions, sizes, periods, reorder, made), made);
}

int Cart_sub(MPI_Comm comm, const int remain[], MPI_Comm* made) {
  return adopted(native.Cart_sub(comm, remain, made), made);
}

int Graph_create(MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm* made) {
  return adopted(native.Graph_create(comm, nodes, index, edges, reorder, made), made);
}

int Dist_graph_create(MPI_Comm comm, int count, const int sources[], const int degrees[], const int destinations[],
                      const int weights[], MPI_Info info, int reorder, MPI_Comm* made) {
  return adopted(native.Dist_graph_create(comm, count, sources, degrees, destinations, weights, info, reorder, made),
                 made);
}

int Dist_graph_create_adjacent(MPI_Comm comm, int in_degree, const int sources[], const int source_weights[],
                               int out_degree, const int destinations[], const int destination_weights[], MPI_Info info,
                               int reorder, MPI_Comm* made) {
  return adopted(native.Dist_graph_create_adjacent(comm, in_degree, sources, source_weights, out_degree, destinations,
                                                   destination_weights, info, reorder, made),
                 made);
}

int Intercomm_merge(MPI_Comm comm, int high, MPI_Comm* made) {
  return adopted(native.Intercomm_merge(comm, high, made), made);
}

// Programs may find these here at run time, and not in the library.
int Comm_shrink(MPI_Comm comm, MPI_Comm* made) {
  return native.Comm_shrink == nullptr ? MPI_ERR_OTHER : adopted(native.Comm_shrink(comm, made), made);
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
