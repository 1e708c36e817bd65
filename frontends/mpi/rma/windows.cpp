// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/rma/windows.hpp"

#include "mpi/job/job.hpp"
#include "mpi/lanes/offloader.hpp"
#include "mpi/native/handlers.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <optional>

namespace offpath::mpi {

Windows windows;

void Windows::add(std::shared_ptr<OffloadedWindow> window) {
  std::lock_guard lock(mutex_);
  table_.insert(window->handle(), window.get());
  owned_.push_back(std::move(window));
  count_.store(owned_.size(), std::memory_order_release);
}

void Windows::count_ended(const OffloadedWindow& window) {
  totals_.operations_count.fetch_add(window.operations(), std::memory_order_relaxed);
  totals_.operations_bytes.fetch_add(window.bytes(), std::memory_order_relaxed);
  if (window.mixture() == nullptr) return;
  totals_.natively_count.fetch_add(window.mixture()->operations(), std::memory_order_relaxed);
  totals_.natively_bytes.fetch_add(window.mixture()->bytes(), std::memory_order_relaxed);
}

void Windows::remove(OffloadedWindow& window) {
  const std::shared_ptr<OffloadedWindow> held = window.shared_from_this();
  {
    std::lock_guard lock(mutex_);
    table_.erase(window.handle());
    std::erase(owned_, held);
    count_.store(owned_.size(), std::memory_order_release);
  }
  count_ended(window);
  window.close();
}

void Windows::clear() {
  std::vector<std::shared_ptr<OffloadedWindow>> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(owned_);
    for (const auto& window : left) table_.erase(window->handle());
    count_.store(0, std::memory_order_release);
  }
  for (const auto& window : left) {
    count_ended(*window);
    window->close();
  }
}

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

struct Part {
  void* base;
  int64_t bytes;
  int64_t unit_bytes;
  bool dynamic;
};

// nullptr: on all ranks. Collective.
std::shared_ptr<OffloadedWindow> make_window(MPI_Win win, Assembly team, const Part& part) {
  const MPI_Comm shadow = team.shadow;
  std::vector<Exposed> exposed(part.dynamic ? 0 : static_cast<size_t>(team.size));
  const Exposed own{part.bytes, part.unit_bytes};
  bool made = true;
  if (!part.dynamic) {
    made = native.Allgather(&own, sizeof(own), MPI_BYTE, exposed.data(), sizeof(own), MPI_BYTE, shadow) == MPI_SUCCESS;
  }
  auto window = std::make_shared<OffloadedWindow>(win, std::move(team), std::move(exposed));
  offpath_error_t error{};
  made = window->open(part.base, static_cast<uint64_t>(part.bytes), &error) == OFFPATH_OK && made;
  if (!made) say(job.settings(), LogLevel::info, "a window of %d ranks stays native: %s", window->size(), error.text);
  const int mine = made ? 1 : 0;
  int all = 0;
  // Also tells everybody that all parts are open.
  const int code = native.Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, shadow);
  if (code == MPI_SUCCESS && all == 1) return window;
  window->close();
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

// After the native window was made. Collective.
int adopt(int code, MPI_Comm comm, MPI_Info info, const Part& part, const MPI_Win* win) {
  if (code != MPI_SUCCESS || !job.active() || Inside::here()) return code;
  const Inside inside;
  try {
    const uint32_t nodes = count_nodes(comm);
    if (nodes == 0) return code;
    std::optional<Assembly> team;
    const std::optional<Ways> wanted = to_be_offloaded(comm, info, nodes);
    if (wanted) team = assemble(comm, true);
    std::shared_ptr<OffloadedWindow> window = team ? make_window(*win, std::move(*team), part) : nullptr;
    auto& total = window == nullptr ? windows.totals().native_count : windows.totals().offloaded_count;
    total.fetch_add(1, std::memory_order_relaxed);
    if (window == nullptr) return code;
    // No rank needs to know of another's.
    const Ways ways = parse_ways(job.settings().windows, *wanted);
    if (ways != Ways::dpu && !part.dynamic && Mixture::possible(*win)) {
      windows.totals().mixed_count.fetch_add(1, std::memory_order_relaxed);
      window->mix(std::make_unique<Mixture>(*win, places_of(comm, window->rank()), ways));
    }
    windows.add(std::move(window));
  } catch (const std::exception&) {
    // The other ranks wait in an agreement we cannot answer; MPI itself does no better without memory.
    say(job.settings(), LogLevel::error, "out of memory while a window was made");
  }
  return code;
}

}  // namespace

namespace handlers {
namespace {

// The native window may have registered it with a network card, where it is bound to the pages it has now.
void keep_in_place(const void* base, MPI_Aint bytes) {
  if (job.active() && bytes > 0) offpath_memory_keep(job.session(), base, static_cast<uint64_t>(bytes));
}

int attach_error(int code) { return code == MPI_ERR_ARG ? MPI_ERR_RMA_ATTACH : code; }

}  // namespace

int Win_create(void* base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  keep_in_place(base, size);
  const int code = native.Win_create(base, size, unit, info, comm, win);
  return adopt(code, comm, info, {base, size, unit, false}, win);
}

int Win_allocate(MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  const int code = native.Win_allocate(size, unit, info, comm, base, win);
  return adopt(code, comm, info, {code == MPI_SUCCESS ? *static_cast<void**>(base) : nullptr, size, unit, false}, win);
}

int Win_create_c(void* base, MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  keep_in_place(base, size);
  const int code = native.Win_create_c(base, size, unit, info, comm, win);
  return adopt(code, comm, info, {base, size, unit, false}, win);
}

int Win_allocate_c(MPI_Aint size, MPI_Aint unit, MPI_Info info, MPI_Comm comm, void* base, MPI_Win* win) {
  const int code = native.Win_allocate_c(size, unit, info, comm, base, win);
  return adopt(code, comm, info, {code == MPI_SUCCESS ? *static_cast<void**>(base) : nullptr, size, unit, false}, win);
}

int Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  return adopt(native.Win_create_dynamic(info, comm, win), comm, info, {nullptr, 0, 1, true}, win);
}

int Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  constexpr const char* kCall = name_of(&Native::Win_attach);
  keep_in_place(base, size);
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr) return native.Win_attach(win, base, size);
  if (!window->dynamic()) return window->raise(kCall, MPI_ERR_RMA_FLAVOR);
  if (size < 0) return window->raise(kCall, MPI_ERR_SIZE);
  if (size == 0) return MPI_SUCCESS;
  return window->raise(kCall, attach_error(window->attach(base, static_cast<uint64_t>(size))));
}

int Win_detach(MPI_Win win, const void* base) {
  constexpr const char* kCall = name_of(&Native::Win_detach);
  OffloadedWindow* const window = windows.find(win);
  if (window == nullptr) return native.Win_detach(win, base);
  if (!window->dynamic()) return window->raise(kCall, MPI_ERR_RMA_FLAVOR);
  return window->raise(kCall, attach_error(window->detach(const_cast<void*>(base))));
}

int Win_free(MPI_Win* win) {
  constexpr const char* kCall = name_of(&Native::Win_free);
  OffloadedWindow* const window = win == nullptr ? nullptr : windows.find(*win);
  if (window == nullptr) return native.Win_free(win);
  if (!window->epochs().may_free()) return window->raise(kCall, MPI_ERR_RMA_SYNC);
  int code = window->flush();
  window->finish_requests();
  // Whoever is through here asks nothing of anybody any more.
  window->handshake().barrier();
  window->raise(kCall, code);
  {
    const Inside inside;
    if (window->mixture() != nullptr) window->mixture()->close();
    windows.remove(*window);
  }
  const int freed = native.Win_free(win);
  return code == MPI_SUCCESS ? freed : code;
}

}  // namespace handlers
}  // namespace offpath::mpi
