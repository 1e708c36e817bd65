// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/new_lane.hpp"

#include "base/random.hpp"
#include "mpi/job/job.hpp"
#include "mpi/job/waiting.hpp"
#include "mpi/lanes/communicators.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/errors_return.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>

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

// As Job::go_on(), with what other ranks may wait for.
offpath_status_t look_for_service(const char* what) {
  try {
    const offpath_status_t status = job.go_on();
    if (status == OFFPATH_IN_PROGRESS) offloader.progress();
    return status;
  } catch (const std::exception& problem) {
    say_cannot(what, problem);
    return OFFPATH_ERR_NO_MEMORY;
  }
}

// Waits, where the service is lost, for another one. Whether there is one.
bool has_service(const char* what) {
  offpath_status_t status = look_for_service(what);
  for (Waiter waiter; status == OFFPATH_IN_PROGRESS; status = look_for_service(what)) waiter.pause();
  return status == OFFPATH_OK;
}

// This rank's session from now on, which stays at its service; without one where there is none.
client::Stay find_session(const char* what) {
  while (has_service(what)) {
    client::Stay found(job.session());
    if (offpath_session_alive(found.session()) != 0) return found;
  }
  return client::Stay();
}

// Where a member's session is now.
struct Place {
  attach::Address address;
  enum : uint8_t { kStays, kGoesOn, kCannotGoOn } does;
};

// Where all members' sessions are now. False, on all ranks: that failed, or they cannot reach each other. A service may leave while some
// wait here for others, who come from the next one already: then all say it again. All know the same, so they end together. Collective.
bool gather_places(MPI_Comm comm, const char* what, client::Stay* stay, std::vector<Place>* all) {
  int size = 0;
  native.Comm_size(comm, &size);
  bool has_room = true;
  try {
    all->resize(static_cast<size_t>(size));
  } catch (const std::exception& problem) {
    has_room = say_cannot(what, problem);
  }
  if (!all_agree(comm, has_room)) return false;
  constexpr int kBytes = sizeof(Place);
  const auto any = [all](uint8_t does) {
    return std::any_of(all->begin(), all->end(), [does](const Place& place) { return place.does == does; });
  };
  for (Waiter waiter;; waiter.pause()) {
    Place own{};
    const offpath_status_t status = look_for_service(what);
    const bool is_left = status == OFFPATH_IN_PROGRESS || (status == OFFPATH_OK && job.session() != stay->session());
    const bool cannot_go_on = status != OFFPATH_OK || client::leaves(stay->session());
    own.does = is_left ? Place::kGoesOn : cannot_go_on ? Place::kCannotGoOn : Place::kStays;
    attach::address_of(stay->session(), &own.address);
    if (native.Allgather(&own, kBytes, MPI_BYTE, all->data(), kBytes, MPI_BYTE, comm) != MPI_SUCCESS) return false;
    if (!any(Place::kGoesOn)) {
      if (attach::Directory::are_whole(*all)) return true;
      if (any(Place::kCannotGoOn)) return false;
    }
    if (!is_left) continue;  // who is where it was may not have heard yet that its service leaves
    if (client::Stay found = find_session(what); found.session() != nullptr) *stay = std::move(found);
  }
}

// May throw bad_alloc.
attach::Directory directory_of(const std::vector<Place>& places) {
  std::vector<attach::Address> addresses;
  for (const Place& place : places) addresses.push_back(place.address);
  return attach::Directory(addresses);
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

// The communicator of agreements (adapt/adapter.hpp); MPI_COMM_NULL: it failed. Collective.
MPI_Comm make_council(MPI_Comm shadow) {
  MPI_Group group = MPI_GROUP_NULL;
  if (native.Comm_group(shadow, &group) != MPI_SUCCESS) return MPI_COMM_NULL;
  const MPI_Comm council = make_shadow(shadow, group, nullptr);
  native.Group_free(&group);
  return council;
}

// Where the members are, now that one is not where it was. False: not on all ranks. Collective.
bool find_members(MPI_Comm shadow, const char* what, ServiceTeam* service) {
  bool found = false;
  client::Stay stay(service->session());
  std::vector<Place> places;
  if (!gather_places(shadow, what, &stay, &places)) return false;
  try {
    service->move(directory_of(places), std::move(stay));
    found = true;
  } catch (const std::exception& problem) {
    say_cannot(what, problem);
  }
  return all_agree(shadow, found);
}

// What needs memory, or may fail otherwise, and nobody else: what follows on the agreement does not. False: it failed.
bool prepare(MPI_Comm comm, const char* what, std::optional<Group>* group, Assembly* parts) {
  native.Comm_rank(comm, &parts->rank);
  native.Comm_size(comm, &parts->size);
  try {
    offloader.retire();
    const client::Stay stay = find_session(what);
    if (stay.session() == nullptr || !has_room(parts->rank)) return false;
    group->emplace(comm);
    parts->neighborhood = Neighborhood::read(comm);
    parts->service = std::make_unique<ServiceTeam>(ServiceTeam::Id{}, parts->rank, world_ranks(comm, parts->size),
                                                   attach::Directory(), stay.session());
    return true;
  } catch (const std::exception& problem) {
    return say_cannot(what, problem);
  }
}

// The shadow of a team that all ranks agree on, whose name and members `service` gets. MPI_COMM_NULL, on all ranks: one of them is not
// `able`, or it failed. Who is able has the rest. Collective over `comm`.
MPI_Comm make_team(MPI_Comm comm, const char* what, bool able, const std::optional<Group>& group,
                   const Neighborhood* neighborhood, ServiceTeam* service) {
  int rank = 0;
  native.Comm_rank(comm, &rank);
  const auto agreed = agree(comm, rank, able);
  if (!agreed) return MPI_COMM_NULL;
  // A context id is found by all ranks together, so all have it or none.
  MPI_Comm shadow = make_shadow(comm, group->get(), neighborhood);
  if (shadow == MPI_COMM_NULL) return MPI_COMM_NULL;
  service->name(agreed->id);
  if (agreed->has_gone_on && !find_members(shadow, what, service)) native.Comm_free(&shadow);
  return shadow;
}

}  // namespace

Group::Group(MPI_Comm comm) {
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

Group::~Group() {
  if (group_ != MPI_GROUP_NULL) native.Group_free(&group_);
}

bool say_cannot(const char* what, const std::exception& problem) {
  say(job.settings(), LogLevel::warn, "%s stays native on all its ranks, as rank %d could not make its part: %s", what,
      job.rank(), problem.what());
  return false;
}

std::optional<Assembly> assemble(MPI_Comm comm, const char* what, bool able) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  Assembly made;
  std::optional<Group> group;
  able = prepare(comm, what, &group, &made) && able;
  made.shadow = make_team(comm, what, able, group, made.neighborhood.get(), made.service.get());
  if (made.shadow == MPI_COMM_NULL) return std::nullopt;
  return made;
}

bool all_have(MPI_Comm comm, bool own) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  return all_agree(comm, own);
}

NewLane::NewLane(MPI_Comm comm, const char* what, CommCell cell, bool able, Preference preference,
                 const std::string& compress)
    : comm_(comm), what_(what) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm);
  Assembly parts;
  if (!able || !prepare(comm, what, &group_, &parts)) return;
  service_ = parts.service.get();
  try {
    service_->compress(compress);
    lane_.emplace_back();
    lane_.back() = std::make_unique<Lane>(std::move(cell), std::move(parts), count_nodes(comm), preference);
  } catch (const std::exception& problem) {
    lane_.clear();
    say_cannot(what, problem);
  }
}

NewLane::~NewLane() {
  const Inside inside;
  lane_.clear();
  group_.reset();
}

bool NewLane::agree(bool able) {
  const Meeting inside;
  const ErrorsReturn errors_return(comm_);
  Lane* const lane = get();
  const Neighborhood* const neighborhood = lane == nullptr ? nullptr : lane->neighborhood();
  MPI_Comm shadow = make_team(comm_, what_, able && lane != nullptr, group_, neighborhood, service_);
  if (shadow == MPI_COMM_NULL) return false;
  MPI_Comm council = MPI_COMM_NULL;
  if (job.adapts()) {
    council = make_council(shadow);
    if (!all_agree(shadow, council != MPI_COMM_NULL)) {
      if (council != MPI_COMM_NULL) native.Comm_free(&council);
      native.Comm_free(&shadow);
      return false;
    }
  }
  lane->begin(shadow, council);
  offloader.add_lane(lane_);
  return true;
}

}  // namespace offpath::mpi
