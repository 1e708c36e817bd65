// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/communicators.hpp"

#include "base/random.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/errors_return.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <numeric>
#include <unordered_set>

namespace offpath::mpi {
namespace {

// A shadow communicator takes a context id of the native library. MPICH has 2048.
#ifdef OPEN_MPI
constexpr size_t kMaxTeams = 16384;
#else
constexpr size_t kMaxTeams = 512;
#endif

bool all_agree(MPI_Comm comm, bool own) {
  int mine = own ? 1 : 0;
  int all = 0;
  return native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

// The members' ranks in MPI_COMM_WORLD; empty if any is from another world.
std::vector<int> world_ranks(MPI_Group group, int size) {
  std::vector<int> own(static_cast<size_t>(size));
  std::vector<int> world(static_cast<size_t>(size));
  std::iota(own.begin(), own.end(), 0);
  if (native.Group_translate_ranks(group, size, own.data(), job.world_group(), world.data()) != MPI_SUCCESS) return {};
  for (const int rank : world) {
    if (rank == MPI_UNDEFINED || rank < 0) return {};
  }
  return world;
}

struct Agreed {
  ServiceTeam::Id id;
  bool has_gone_on;  // some rank is not where it was at the beginning
};

// Whether all ranks are able, and the team's random id. Nothing: one is not. Collective, and all there is to agree on.
std::optional<Agreed> agree(MPI_Comm comm, int rank, bool able) {
  struct {
    uint64_t unable;
    uint64_t has_gone_on;
    uint64_t id[OFFPATH_TEAM_ID_BYTES / sizeof(uint64_t)];
  } own{able ? uint64_t{0} : 1, job.has_gone_on() ? uint64_t{1} : 0, {}}, all{};
  constexpr int kWords = sizeof(own) / sizeof(uint64_t);
  if (rank == 0) base::fill_random(own.id, sizeof(own.id));
  const int code = native.Allreduce(&own, &all, kWords, MPI_UINT64_T, MPI_BOR, comm);
  if (code != MPI_SUCCESS || all.unable != 0) return std::nullopt;
  Agreed agreed{{}, all.has_gone_on != 0};
  memcpy(agreed.id.data(), all.id, agreed.id.size());
  return agreed;
}

// Waits, where the service is lost, for another one. Whether there is one.
bool has_service() {
  offpath_status_t status = job.go_on();
  for (Waiter waiter; status == OFFPATH_IN_PROGRESS; status = job.go_on()) {
    offloader.progress();
    waiter.pause();
  }
  return status == OFFPATH_OK;
}

// This rank's session from now on, which stays at its service; without one where there is none.
client::Stay find_session() {
  while (has_service()) {
    client::Stay found(job.session());
    if (offpath_session_alive(found.session()) != 0) return found;
  }
  return client::Stay();
}

// Where all members' sessions are now; nothing: that failed, or they cannot reach each other. A service may leave while some wait
// here for others, who come from the next one already: then all say it again. All know the same, so they end together. Collective.
std::optional<attach::Directory> gather_directory(MPI_Comm comm, int size, client::Stay* stay) {
  enum : uint8_t { kStays, kGoesOn, kCannotGoOn };
  struct Place {
    attach::Address address;
    uint8_t does;
  };
  std::vector<Place> all(static_cast<size_t>(size));
  constexpr int kBytes = sizeof(Place);
  const auto any = [&all](uint8_t does) {
    return std::any_of(all.begin(), all.end(), [does](const Place& place) { return place.does == does; });
  };
  for (Waiter waiter;; waiter.pause()) {
    Place own{};
    const offpath_status_t status = job.go_on();
    const bool is_left = status == OFFPATH_IN_PROGRESS || (status == OFFPATH_OK && job.session() != stay->session());
    own.does = is_left ? kGoesOn : status != OFFPATH_OK || client::leaves(stay->session()) ? kCannotGoOn : kStays;
    attach::address_of(stay->session(), &own.address);
    if (native.Allgather(&own, kBytes, MPI_BYTE, all.data(), kBytes, MPI_BYTE, comm) != MPI_SUCCESS) return {};
    if (!any(kGoesOn)) {
      std::vector<attach::Address> addresses;
      for (const Place& place : all) addresses.push_back(place.address);
      attach::Directory found(addresses);
      if (found.is_whole()) return found;
      if (any(kCannotGoOn)) return {};
    }
    if (!is_left) continue;  // who is where it was may not have heard yet that its service leaves
    if (client::Stay found = find_session(); found.session() != nullptr) *stay = std::move(found);
  }
}

// One more team would leave the application too few context ids. Said once.
bool has_room(int rank) {
  static std::atomic<bool> said{false};
  if (ServiceTeam::count() < kMaxTeams) return true;
  if (rank == 0 && !said.exchange(true)) {
    say(job.settings(), LogLevel::warn,
        "%zu communicators, windows and persistent collectives are offloaded at a time (each takes one more context id "
        "of the MPI library), those made beyond stay native. Free what is not used any more",
        kMaxTeams);
  }
  return false;
}

// The communicator for what goes natively behind the application's back. Not MPI_Comm_dup: that would run its
// attribute callbacks. MPI_COMM_NULL: it failed. Collective.
MPI_Comm make_shadow(MPI_Comm comm, MPI_Group group, const Neighborhood* neighborhood) {
  MPI_Comm shadow = MPI_COMM_NULL;
  if (native.Comm_create(comm, group, &shadow) != MPI_SUCCESS) return MPI_COMM_NULL;
  if (neighborhood != nullptr) shadow = neighborhood->move_to(shadow);
  if (shadow != MPI_COMM_NULL) native.Comm_set_errhandler(shadow, MPI_ERRORS_RETURN);
  return shadow;
}

class Group {
 public:
  // MPICH 5 puts ranks that a Cartesian communicator has left out into its group, behind the others.
  explicit Group(MPI_Comm comm) {
    int members = 0, size = 0;
    native.Comm_group(comm, &group_);
    if (native.Comm_size(comm, &members) != MPI_SUCCESS || native.Group_size(group_, &size) != MPI_SUCCESS) return;
    if (members == size) return;
    std::vector<int> first(static_cast<size_t>(members));
    std::iota(first.begin(), first.end(), 0);
    MPI_Group whole = std::exchange(group_, MPI_GROUP_NULL);
    native.Group_incl(whole, members, first.data(), &group_);
    native.Group_free(&whole);
  }
  ~Group() { native.Group_free(&group_); }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  MPI_Group get() const { return group_; }

 private:
  MPI_Group group_ = MPI_GROUP_NULL;
};

// The communicator of agreements (adapt/adapter.hpp); MPI_COMM_NULL, on all ranks: it failed on one. Collective.
MPI_Comm make_council(MPI_Comm comm) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  const Group group(comm);
  MPI_Comm council = make_shadow(comm, group.get(), nullptr);
  if (all_agree(comm, council != MPI_COMM_NULL)) return council;
  if (council != MPI_COMM_NULL) native.Comm_free(&council);
  return MPI_COMM_NULL;
}

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

int open_communicators() {
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

std::optional<Assembly> assemble(MPI_Comm comm, bool able) {
  offloader.retire();
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  Assembly made;
  native.Comm_rank(comm, &made.rank);
  native.Comm_size(comm, &made.size);
  client::Stay stay = find_session();
  const auto agreed = agree(comm, made.rank, able && stay.session() != nullptr && has_room(made.rank));
  if (!agreed) return std::nullopt;
  const Group group(comm);
  made.neighborhood = Neighborhood::read(comm);
  // A context id is found by all ranks together, so all have it or none.
  made.shadow = make_shadow(comm, group.get(), made.neighborhood.get());
  if (made.shadow == MPI_COMM_NULL) return std::nullopt;
  std::optional<attach::Directory> directory{std::in_place};
  if (agreed->has_gone_on) directory = gather_directory(made.shadow, made.size, &stay);
  if (!directory) {
    native.Comm_free(&made.shadow);
    return std::nullopt;
  }
  made.service = std::make_unique<ServiceTeam>(agreed->id, made.rank, world_ranks(group.get(), made.size),
                                               std::move(*directory), stay.session());
  return made;
}

std::unique_ptr<Lane> make_lane(MPI_Comm comm, CommCell cell, bool able, Preference preference,
                                const std::string& compress) {
  std::optional<Assembly> made = assemble(comm, able);
  if (!made) return nullptr;
  made->service->compress(compress);
  const MPI_Comm council = job.adapts() ? make_council(comm) : MPI_COMM_NULL;
  const uint32_t nodes = count_nodes(comm);
  return std::make_unique<Lane>(std::move(cell), std::move(*made), nodes, council, preference);
}

std::vector<uint32_t> nodes_of(MPI_Comm comm) {
  const Inside inside;
  int inter = 0;
  int size = 0;
  if (native.Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return {};
  if (native.Comm_size(comm, &size) != MPI_SUCCESS || size < 2) return {};
  const Group group(comm);
  std::vector<uint32_t> nodes;
  for (const int rank : world_ranks(group.get(), size)) nodes.push_back(job.node_of(rank));
  return nodes;
}

uint32_t count_nodes(MPI_Comm comm) {
  const std::vector<uint32_t> nodes = nodes_of(comm);
  return static_cast<uint32_t>(std::unordered_set<uint32_t>(nodes.begin(), nodes.end()).size());
}

void adopt_communicator(MPI_Comm comm, Preference preference, const std::string& compress) {
  if (comm == MPI_COMM_NULL || !job.active() || Inside::here()) return;
  const Meeting inside;
  try {
    const uint32_t nodes = count_nodes(comm);
    if (nodes == 0 || !job.policy().offloads(nodes)) return;
    const bool able = native.Comm_set_attr(comm, keyval, nullptr) == MPI_SUCCESS;
    std::unique_ptr<Lane> lane =
        make_lane(comm, std::make_shared<std::atomic<MPI_Comm>>(comm), able, preference, compress);
    if (lane == nullptr) return;
    Lane* const value = lane.get();
    offloader.adopt(std::move(lane));
    native.Comm_set_attr(comm, keyval, value);
  } catch (const std::exception&) {
    // The other ranks wait in an agreement we cannot answer; MPI itself does no better without memory.
    say(job.settings(), LogLevel::error, "out of memory while a communicator was made");
  }
}

}  // namespace offpath::mpi
