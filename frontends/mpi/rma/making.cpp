// SPDX-License-Identifier: BSD-3-Clause
// How windows are made: natively, and then at the service if all ranks want that.
#include "mpi/job/job.hpp"
#include "mpi/lanes/new_lane.hpp"
#include "mpi/native/handlers.hpp"
#include "mpi/native/made.hpp"
#include "mpi/rma/lending.hpp"
#include "mpi/rma/windows.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <optional>
#include <string>

namespace offpath::mpi {
namespace {

enum class Word : uint8_t { none, host, dpu, automatic };

Word read_info(MPI_Info info) {
  char value[8] = "";
  int given = 0;
  if (info == MPI_INFO_NULL) return Word::none;
  if (native.Info_get(info, "offpath", sizeof(value) - 1, value, &given) != MPI_SUCCESS || given == 0) {
    return Word::none;
  }
  if (strcmp(value, "dpu") == 0) return Word::dpu;
  if (strcmp(value, "auto") == 0) return Word::automatic;
  return strcmp(value, "host") == 0 ? Word::host : Word::none;
}

// How its operations go; nothing: the window is native. The same on all ranks. Collective.
std::optional<Ways> to_be_offloaded(MPI_Comm comm, MPI_Info info, uint32_t nodes) {
  Word word = read_info(info);
  if (native.Bcast(&word, sizeof(word), MPI_BYTE, 0, comm) != MPI_SUCCESS || word == Word::host) return std::nullopt;
  if (word != Word::none) return word == Word::dpu ? Ways::dpu : Ways::measured;
  const policy::Choice choice = job.policy().choose(policy::Collective::window, 0, nodes);
  if (choice.path == policy::Path::host) return std::nullopt;
  return choice.origin == policy::Origin::forced ? Ways::dpu : Ways::measured;
}

// How a window's operations go. `wanted` as to_be_offloaded() says.
struct Plan {
  uint32_t nodes = 0;  // 0: as if we were not there
  std::optional<Ways> wanted;
};

// The same on all ranks. Collective. Inside.
Plan plan_for(MPI_Comm comm, MPI_Info info) {
  Plan plan{count_nodes(comm), std::nullopt};
  if (plan.nodes > 0) plan.wanted = to_be_offloaded(comm, info, plan.nodes);
  return plan;
}

struct Part {
  void* base;
  int64_t bytes;
  int64_t unit_bytes;
  bool dynamic;
};

constexpr const char* kWindow = "a window";

// nullptr: on all ranks. `exposed`: room for what they tell of their parts. Collective.
std::shared_ptr<OffloadedWindow> make_window(MPI_Win win, Assembly team, const Part& part, std::vector<Exposed> exposed,
                                             const std::string& compress) {
  MPI_Comm shadow = team.shadow;
  const Exposed own{part.bytes, part.unit_bytes};
  bool made = true;
  if (!part.dynamic) {
    made = native.Allgather(&own, sizeof(own), MPI_BYTE, exposed.data(), sizeof(own), MPI_BYTE, shadow) == MPI_SUCCESS;
  }
  std::shared_ptr<OffloadedWindow> window;
  try {
    if (made) {
      team.service->compress(compress);
      window = std::make_shared<OffloadedWindow>(win, std::move(team), std::move(exposed));
      offpath_error_t error{};
      made = window->open(part.base, static_cast<uint64_t>(part.bytes), &error) == OFFPATH_OK;
      if (!made)
        say(job.settings(), LogLevel::info, "a window of %d ranks stays native: %s", window->size(), error.text);
    }
  } catch (const std::exception& problem) {
    made = say_cannot(kWindow, problem);
  }
  // Also tells everybody that all parts are open.
  if (all_have(shadow, made)) return window;
  if (window != nullptr)
    window->close();
  else
    native.Comm_free(&shadow);
  return nullptr;
}

std::vector<policy::Place> places_of(MPI_Comm comm, int own) {
  const std::vector<uint32_t> nodes = nodes_of(comm);
  std::vector<policy::Place> places;
  for (const uint32_t node : nodes) {
    const bool near = node == nodes[static_cast<size_t>(own)];
    places.push_back(near ? policy::Place::near : policy::Place::far);
  }
  places[static_cast<size_t>(own)] = policy::Place::own;
  return places;
}

// The native way of a window that is offloaded; nullptr: there is none. What is atomic may use it only if all ranks have
// one with the same ways. Collective.
std::unique_ptr<Mixture> mix(MPI_Win win, const OffloadedWindow& window, Ways ways, MPI_Comm comm) {
  const bool mixes = ways != Ways::dpu && !window.dynamic() && Mixture::possible(win);
  const int own = mixes ? static_cast<int>(ways) : static_cast<int>(Ways::dpu);
  const std::array<int, 2> mine{own, -own};
  std::array<int, 2> most{};
  const int code = native.Allreduce(mine.data(), most.data(), 2, MPI_INT, MPI_MAX, window.shadow());
  if (!mixes) return nullptr;
  windows.totals().mixed_count.fetch_add(1, std::memory_order_relaxed);
  const bool alike = code == MPI_SUCCESS && most[0] == -most[1];
  return std::make_unique<Mixture>(win, places_of(comm, window.rank()), ways, alike);
}

// Its way beside the service, and where it is found. False: not on this rank. Collective.
bool enter(MPI_Win win, const std::shared_ptr<OffloadedWindow>& window, Ways ways, MPI_Comm comm) {
  try {
    window->mix(mix(win, *window, ways, comm));
    windows.add(window);
    return true;
  } catch (const std::exception& problem) {
    return say_cannot(kWindow, problem);
  }
}

// nullptr: on all ranks. Collective.
std::shared_ptr<OffloadedWindow> make_offloaded(MPI_Win win, MPI_Comm comm, MPI_Info info, const Part& part,
                                                Ways ways) {
  std::vector<Exposed> exposed;
  std::string compress;
  bool able = true;
  try {
    int size = 0;
    native.Comm_size(comm, &size);
    exposed.resize(part.dynamic ? 0 : static_cast<size_t>(size));
    compress = read_compress(info);
  } catch (const std::exception& problem) {
    able = say_cannot(kWindow, problem);
  }
  std::optional<Assembly> team = assemble(comm, kWindow, able);
  if (!team) return nullptr;
  auto window = make_window(win, std::move(*team), part, std::move(exposed), compress);
  if (window == nullptr) return nullptr;
  const bool entered = enter(win, window, ways, comm);
  if (all_have(window->shadow(), entered)) return window;
  entered ? windows.remove(*window) : window->close();
  return nullptr;
}

// After the native window was made. Collective.
void adopt(MPI_Comm comm, const std::optional<Plan>& known, MPI_Info info, const Part& part, const MPI_Win* win) {
  if (!job.active() || Inside::here()) return;
  const Meeting inside;
  const auto [nodes, wanted] = known ? *known : plan_for(comm, info);
  if (nodes == 0) return;
  const bool offloaded =
      wanted && make_offloaded(*win, comm, info, part, parse_ways(job.settings().windows, *wanted)) != nullptr;
  auto& total = offloaded ? windows.totals().offloaded_count : windows.totals().native_count;
  total.fetch_add(1, std::memory_order_relaxed);
}

bool everywhere(bool here, MPI_Comm comm) {
  const int own = here ? 1 : 0;
  int all = 0;
  return native.Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS && all == 1;
}

// Collective; MPI_SUCCESS on all ranks or on none. Where the library cannot make one, the job goes on.
template <typename Unit, typename Create>
int create_quietly(Create create, void* base, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  MPI_Errhandler saved = MPI_ERRHANDLER_NULL;
  native.Comm_get_errhandler(comm, &saved);
  native.Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int code = create(base, bytes, unit, info, comm, win);
  const bool all = everywhere(code == MPI_SUCCESS, comm);
  if (code == MPI_SUCCESS && !all) native.Win_free(win);
  native.Comm_set_errhandler(comm, saved);
  native.Errhandler_free(&saved);
  return all ? MPI_SUCCESS : MPI_ERR_OTHER;
}

// A window to be offloaded whose memory lies where the service uses it in place. Where some of its operations go natively,
// only if no two ranks share a node: between those the library's own memory is faster. False: on all ranks. Collective.
template <typename Unit, typename Create>
bool allocate_here(Create create, const Plan& plan, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, void* base,
                   MPI_Win* win) {
  constexpr MPI_Aint kPage = 4096;
  if (!plan.wanted) return false;
  int ranks = 0;
  native.Comm_size(comm, &ranks);
  const bool apart = plan.nodes == static_cast<uint32_t>(ranks);
  const bool served = apart || parse_ways(job.settings().windows, *plan.wanted) == Ways::dpu;
  void* memory = served && bytes >= 0 && base != nullptr ? lend(std::max(bytes, kPage), info) : nullptr;
  bool made = everywhere(memory != nullptr, comm) &&
              create_quietly<Unit>(create, memory, bytes, unit, info, comm, win) == MPI_SUCCESS;
  if (!made) {
    take_back(memory);
    return false;
  }
  windows.memory.lent(*win, memory);
  *static_cast<void**>(base) = memory;
  return true;
}

template <typename Unit, typename Create, typename Allocate>
int allocate(Create create, Allocate allocate_natively, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm,
             void* base, MPI_Win* win) {
  std::optional<Plan> plan;
  int code = MPI_SUCCESS;
  bool here = false;
  if (job.active() && !Inside::here()) {
    const Meeting inside;
    plan = plan_for(comm, info);
    here = allocate_here<Unit>(create, *plan, bytes, unit, info, comm, base, win);
  }
  if (!here) {
    Made<MPI_Win> made(win);
    code = allocate_natively(bytes, unit, info, comm, base, made.place());
    if (!made.give(code, MPI_WIN_NULL)) return code;
  }
  void* const memory = *static_cast<void**>(base);
  if (!here) {
    windows.memory.keep(memory, bytes);
    windows.memory.kept(true, *win, memory, bytes);
  }
  adopt(comm, plan, info, {memory, bytes, unit, false}, win);
  return code;
}

template <typename Unit, typename Create>
int create(Create create_natively, void* base, MPI_Aint bytes, Unit unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  windows.memory.keep(base, bytes);
  Made<MPI_Win> made(win);
  const int code = create_natively(base, bytes, unit, info, comm, made.place());
  const bool is_made = made.give(code, MPI_WIN_NULL);
  windows.memory.kept(is_made, is_made ? *win : MPI_WIN_NULL, base, bytes);
  if (is_made) adopt(comm, std::nullopt, info, {base, bytes, unit, false}, win);
  return code;
}

}  // namespace

namespace handlers {

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create(native.Win_create, base, size, unit, info, comm, win);
}

int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate(native.Win_create, native.Win_allocate, size, unit, info, comm, base, win);
}

int Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return create(native.Win_create_c, base, size, unit, info, comm, win);
}

int Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  return allocate(native.Win_create_c, native.Win_allocate_c, size, unit, info, comm, base, win);
}

// A window of memory that is ours was created natively over it.
int Win_get_attr(MPI_Win win, int key, void* value, int* found) {
  static int allocated = MPI_WIN_FLAVOR_ALLOCATE;
  const int code = native.Win_get_attr(win, key, value, found);
  if (code == MPI_SUCCESS && key == MPI_WIN_CREATE_FLAVOR && *found != 0 && windows.memory.is_lent(win))
    *static_cast<int**>(value) = &allocated;
  return code;
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  Made<MPI_Win> made(win);
  const int code = native.Win_create_dynamic(info, comm, made.place());
  if (made.give(code, MPI_WIN_NULL)) adopt(comm, std::nullopt, info, {nullptr, 0, 1, true}, win);
  return code;
}

}  // namespace handlers
}  // namespace offpath::mpi
