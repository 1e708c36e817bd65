// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/communicators.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/new_lane.hpp"
#include "mpi/lanes/offloader.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>

namespace offpath::mpi {
namespace {

// The members' ranks in MPI_COMM_WORLD, for who has room for `size` of them twice. False: any is from another world.
bool find_world_ranks(MPI_Comm comm, int size, int* own, int* world) {
  MPI_Group group = MPI_GROUP_NULL;
  std::iota(own, own + size, 0);
  bool found = native.Comm_group(comm, &group) == MPI_SUCCESS;
  found = found && native.Group_translate_ranks(group, size, own, job.world_group(), world) == MPI_SUCCESS;
  if (group != MPI_GROUP_NULL) native.Group_free(&group);
  return found && std::none_of(world, world + size, [](int rank) { return rank == MPI_UNDEFINED || rank < 0; });
}

// Room for the ranks of any communicator of this world, so that every rank can always say how many nodes it has: no rank may take
// another path than the others for want of memory.
struct Room {
  std::mutex mutex;
  std::vector<int> own, world;
} room;

// Attribute callbacks: a duplicate does not inherit the lane; a freed communicator forgets it.
int keep_attribute_back(MPI_Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int forget_communicator(MPI_Comm comm, int, void* value, void*) {
  if (value != nullptr) offloader.forget_comm(comm, *static_cast<Lane*>(value));
  return MPI_SUCCESS;
}

int keyval = MPI_KEYVAL_INVALID;

}  // namespace

std::vector<int> world_ranks(MPI_Comm comm, int size) {
  std::vector<int> own(static_cast<size_t>(size)), world(static_cast<size_t>(size));
  return find_world_ranks(comm, size, own.data(), world.data()) ? world : std::vector<int>();
}

int open_communicators() {
  room.own.resize(static_cast<size_t>(job.size()));
  room.world.resize(static_cast<size_t>(job.size()));
  return native.Comm_create_keyval(&keep_attribute_back, &forget_communicator, &keyval, nullptr);
}

void forget_communicators() {
  for (const MPI_Comm comm : offloader.communicators()) native.Comm_delete_attr(comm, keyval);
  offloader.clear();
}

void close_communicators() {
  if (keyval != MPI_KEYVAL_INVALID) native.Comm_free_keyval(&keyval);
  keyval = MPI_KEYVAL_INVALID;
}

namespace {

// 0: none that are counted.
int size_to_count(MPI_Comm comm) {
  int inter = 0, size = 0;
  if (native.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return 0;
  return native.Comm_size(comm, &size) == MPI_SUCCESS && size >= 2 ? size : 0;
}

}  // namespace

std::vector<uint32_t> nodes_of(MPI_Comm comm) {
  const Inside inside;
  std::vector<uint32_t> nodes;
  const int size = size_to_count(comm);
  if (size == 0) return nodes;
  for (const int rank : world_ranks(comm, size)) nodes.push_back(job.node_of(rank));
  return nodes;
}

uint32_t count_nodes(MPI_Comm comm) {
  const Inside inside;
  const int size = size_to_count(comm);
  std::lock_guard lock(room.mutex);
  if (size == 0 || static_cast<size_t>(size) > room.own.size()) return 0;
  if (!find_world_ranks(comm, size, room.own.data(), room.world.data())) return 0;
  const auto begin = room.world.begin(), end = begin + size;
  std::transform(begin, end, begin, [](int rank) { return static_cast<int>(job.node_of(rank)); });
  std::sort(begin, end);
  return static_cast<uint32_t>(std::unique(begin, end) - begin);
}

void adopt_communicator(MPI_Comm comm, Preference preference, const std::string& compress) {
  if (comm == MPI_COMM_NULL || !job.active() || Inside::here()) return;
  constexpr const char* kCommunicator = "a communicator";
  const Meeting inside;
  const uint32_t nodes = count_nodes(comm);
  if (nodes == 0 || !job.policy().offloads(nodes)) return;
  bool able = native.Comm_set_attr(comm, keyval, nullptr) == MPI_SUCCESS;
  CommCell cell;
  try {
    cell = std::make_shared<std::atomic<MPI_Comm>>(comm);
  } catch (const std::exception& problem) {
    able = say_cannot(kCommunicator, problem);
  }
  NewLane made(comm, kCommunicator, std::move(cell), able, preference, compress);
  Lane* const lane = made.get();
  bool entered = false;
  try {
    if (lane != nullptr) offloader.enter(comm, *lane);
    entered = lane != nullptr && native.Comm_set_attr(comm, keyval, lane) == MPI_SUCCESS;
  } catch (const std::exception& problem) {
    say_cannot(kCommunicator, problem);
  }
  if (made.agree(entered) || lane == nullptr) return;
  native.Comm_set_attr(comm, keyval, nullptr);
  offloader.forget_comm(comm, *lane);
}

}  // namespace offpath::mpi
