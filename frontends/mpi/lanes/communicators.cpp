// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/communicators.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/new_lane.hpp"
#include "mpi/lanes/offloader.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>
#include <numeric>

namespace offpath::mpi {
namespace {

// Gives `take` each member's rank in MPI_COMM_WORLD, in order. False: one is from another world. Needs no memory.
template <typename Take>
bool for_world_ranks(MPI_Comm comm, int size, Take take) {
  constexpr int kAtOnce = 256;
  std::array<int, kAtOnce> own{}, world{};
  MPI_Group group = MPI_GROUP_NULL;
  bool found = native.Comm_group(comm, &group) == MPI_SUCCESS;
  for (int first = 0; found && first < size; first += kAtOnce) {
    const int count = std::min(kAtOnce, size - first);
    std::iota(own.begin(), own.begin() + count, first);
    found = native.Group_translate_ranks(group, count, own.data(), job.world_group(), world.data()) == MPI_SUCCESS;
    for (int i = 0; found && i < count; ++i) {
      const int rank = world[static_cast<size_t>(i)];
      found = rank != MPI_UNDEFINED && rank >= 0;
      if (found) take(rank);
    }
  }
  if (group != MPI_GROUP_NULL) native.Group_free(&group);
  return found;
}

// Which nodes were met. Made beforehand, so that every rank can always say how many a communicator has: no rank may take another path
// than the others for want of memory.
struct Met {
  std::mutex mutex;
  std::vector<bool> nodes;
} met;

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
  std::vector<int> ranks;
  ranks.reserve(static_cast<size_t>(size));
  if (!for_world_ranks(comm, size, [&ranks](int rank) { ranks.push_back(rank); })) ranks.clear();
  return ranks;
}

bool is_of_this_world(MPI_Comm comm) {
  int size = 0;
  return native.Comm_size(comm, &size) == MPI_SUCCESS && for_world_ranks(comm, size, [](int) {});
}

int open_communicators() {
  met.nodes.resize(job.nodes());
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

// 0: none that are counted. Who made a mistake is told by the library, in the program's own call.
int size_to_count(MPI_Comm comm) {
  int inter = 0, size = 0;
  if (comm == MPI_COMM_NULL || native.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return 0;
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
  if (size == 0) return 0;
  std::lock_guard lock(met.mutex);
  std::fill(met.nodes.begin(), met.nodes.end(), false);
  if (!for_world_ranks(comm, size, [](int rank) { met.nodes[job.node_of(rank)] = true; })) return 0;
  return static_cast<uint32_t>(std::count(met.nodes.begin(), met.nodes.end(), true));
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
  if (entered)
    native.Comm_set_attr(comm, keyval, nullptr);  // forgets it
  else
    offloader.forget_comm(comm, *lane);
}

}  // namespace offpath::mpi
