// SPDX-License-Identifier: BSD-3-Clause
// Windows of the fake client: an operation is done from within the tests for it, by reading and writing the target's
// memory; locks and the atomicity of accumulates are kept on a board that all members map.
//
//   OFFPATH_FAKE_LOSE_REMOTE=r:p  world rank r loses its service when it posts its p-th one-sided operation
#include "client/given_up.hpp"
#include "client/kept.hpp"
#include "client/next_session.hpp"
#include "client/pages.hpp"
#include "fake.hpp"
#include "kernels/reduce.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

namespace {

constexpr size_t kMaxRegions = 64;
constexpr long kAtOnce = 1 << 30;

struct Region {
  uint64_t base, bytes;
};

struct Part {
  std::atomic<int> pid;
  std::atomic<int> guard;  // of what follows, and of accumulates
  bool dynamic;
  Region regions[kMaxRegions];
  uint32_t holders;
  bool exclusive;
};

struct WindowBoard {
  Part parts[fake::kMaxMembers];
};

class Guard {
 public:
  explicit Guard(Part& part) : part_(part) {
    while (part_.guard.exchange(1, std::memory_order_acquire) != 0) sched_yield();
  }
  ~Guard() { part_.guard.store(0, std::memory_order_release); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

 private:
  Part& part_;
};

using Runs = std::vector<std::pair<uint64_t, uint64_t>>;  // address, bytes

// The runs of memory that make up the first `bytes` data bytes from `address`.
Runs runs_of(uint64_t address, uint64_t bytes, const offpath_layout_t* layout) {
  if (layout == nullptr) return {{address, bytes}};
  Runs runs;
  while (bytes > 0) {
    for (uint32_t i = 0; i < layout->ranges_count && bytes > 0; ++i) {
      const uint64_t run = std::min(bytes, layout->ranges[i].bytes);
      runs.emplace_back(address + static_cast<uint64_t>(layout->ranges[i].offset_bytes), run);
      bytes -= run;
    }
    address += static_cast<uint64_t>(layout->extent_bytes);
  }
  return runs;
}

bool move(int pid, const Runs& runs, char* data, bool writes) {
  for (const auto& [address, bytes] : runs) {
    for (uint64_t done = 0; done < bytes;) {
      iovec local{data + done, bytes - done};
      iovec remote{reinterpret_cast<void*>(address + done), bytes - done};
      const ssize_t moved =
          writes ? process_vm_writev(pid, &local, 1, &remote, 1, 0) : process_vm_readv(pid, &local, 1, &remote, 1, 0);
      if (moved <= 0) return false;
      done += static_cast<uint64_t>(moved);
    }
    data += bytes;
  }
  return true;
}

}  // namespace

struct offpath_window {
  offpath_team* team = nullptr;
  WindowBoard* board = nullptr;
  std::atomic<uint64_t> issued{0};
  std::atomic<uint64_t> completed{0};
  offpath_status_t failure = OFFPATH_OK;
  std::deque<std::shared_ptr<fake::Remote>> posted;  // not all done

  Part& own() const { return board->parts[team->rank]; }
};

struct fake::Remote {
  offpath_window* window = nullptr;
  offpath_remote_t what{};
  std::vector<char> copied;  // of short data
  Runs send, result, target;
  long tests = 0;
  offpath_status_t status = OFFPATH_IN_PROGRESS;

  offpath_status_t run();
  offpath_status_t run_lock(Part& part);
  offpath_status_t run_data(Part& part);
};

namespace {

bool exposes(const Part& part, const Runs& runs) {
  return std::all_of(runs.begin(), runs.end(), [&](const auto& run) {
    return std::any_of(std::begin(part.regions), std::end(part.regions), [&](const Region& region) {
      return run.first >= region.base && run.first + run.second <= region.base + region.bytes;
    });
  });
}

bool accumulates(offpath_remote_kind_t kind) { return kind >= OFFPATH_ACCUMULATE && kind <= OFFPATH_COMPARE_AND_SWAP; }

void move_on(offpath_window* window) {
  for (const auto& remote : window->posted) {
    if (remote->status != OFFPATH_IN_PROGRESS) continue;
    remote->status = remote->run();
    if (remote->status == OFFPATH_IN_PROGRESS) continue;
    window->team->session->events.fetch_add(1);
    if (remote->status != OFFPATH_OK && window->failure == OFFPATH_OK) window->failure = remote->status;
  }
  while (!window->posted.empty() && window->posted.front()->status != OFFPATH_IN_PROGRESS) {
    window->posted.pop_front();
    ++window->completed;
  }
}

}  // namespace

offpath_status_t fake::Remote::run_lock(Part& part) {
  if (what.kind == OFFPATH_UNLOCK) {
    if (part.holders == 0) return OFFPATH_ERR_ARGUMENT;
    --part.holders;
    part.exclusive = false;
    return OFFPATH_OK;
  }
  const bool exclusive = what.kind == OFFPATH_LOCK_EXCLUSIVE;
  if (part.holders > 0 && (exclusive || part.exclusive)) return OFFPATH_IN_PROGRESS;
  ++part.holders;
  part.exclusive = exclusive;
  return OFFPATH_OK;
}

offpath_status_t fake::Remote::run_data(Part& part) {
  if (!exposes(part, target)) return OFFPATH_ERR_RANGE;
  const int own = getpid();
  const uint64_t bytes = what.target_bytes;
  const bool swaps = what.kind == OFFPATH_COMPARE_AND_SWAP;
  std::vector<char> data(swaps ? 2 * bytes : bytes);
  std::vector<char> old(bytes);
  const bool sends = what.kind == OFFPATH_PUT || (accumulates(what.kind) && what.op != OFFPATH_OP_NO_OP);
  if (sends && !copied.empty()) data = copied;
  if (sends && copied.empty() && !move(own, send, data.data(), false)) return OFFPATH_ERR_MEMORY_FAULT;
  if (what.kind != OFFPATH_PUT && !move(part.pid, target, old.data(), false)) return OFFPATH_ERR_MEMORY_FAULT;
  const bool writes = swaps ? memcmp(old.data(), data.data() + bytes, bytes) == 0 : sends;
  if (accumulates(what.kind) && !swaps && sends) {
    const offpath::kernels::Reduction reduction{what.op, what.element};
    if (what.op != OFFPATH_OP_REPLACE) {
      if (!offpath::kernels::supported(reduction)) return OFFPATH_ERR_ARGUMENT;
      offpath::kernels::combine(reduction, old.data(), data.data(), data.data(), bytes);
    }
  }
  if (writes && !move(part.pid, target, data.data(), true)) return OFFPATH_ERR_MEMORY_FAULT;
  return result.empty() || move(own, result, old.data(), true) ? OFFPATH_OK : OFFPATH_ERR_MEMORY_FAULT;
}

offpath_status_t fake::Remote::run() {
  static const long delay = fake::number_from("OFFPATH_FAKE_DELAY", 3);
  const offpath_team* team = window->team;
  if (team->session->lost) return OFFPATH_ERR_SERVICE_LOST;
  if (team->board->members[what.target].lost != 0) return OFFPATH_ERR_PEER_LOST;
  if (++tests <= delay) return OFFPATH_IN_PROGRESS;
  Part& part = window->board->parts[what.target];
  const Guard guard(part);
  return what.kind >= OFFPATH_LOCK_SHARED ? run_lock(part) : run_data(part);
}

offpath_status_t fake::test(Remote& remote) {
  move_on(remote.window);
  return remote.status;
}

extern "C" {

offpath_status_t offpath_window_create(offpath_team_t* team, const offpath_window_params_t* params,
                                       offpath_window_t** window, offpath_error_t*) {
  std::lock_guard lock(team->session->mutex);
  const std::string path = team->path + "-w" + std::to_string(params->id);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(WindowBoard)) != 0) return OFFPATH_ERR_NO_MEMORY;
  void* memory = mmap(nullptr, sizeof(WindowBoard), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return OFFPATH_ERR_NO_MEMORY;
  auto* made = new offpath_window;
  made->team = team;
  made->board = static_cast<WindowBoard*>(memory);
  Part& own = made->own();
  const Guard guard(own);
  own.pid = getpid();
  own.dynamic = (params->flags & OFFPATH_WINDOW_DYNAMIC) != 0;
  own.regions[0] = {reinterpret_cast<uint64_t>(params->base), params->bytes};
  *window = made;
  return OFFPATH_OK;
}

void offpath_window_destroy(offpath_window_t* window) {
  if (window == nullptr) return;
  for (const char* id : {"-w1", "-w2"}) unlink((window->team->path + id).c_str());
}

offpath_status_t offpath_window_attach(offpath_window_t* window, void* base, uint64_t bytes) {
  const Guard guard(window->own());
  const auto begin = reinterpret_cast<uint64_t>(base);
  Region* free_region = nullptr;
  for (Region& region : window->own().regions) {
    if (region.bytes == 0 && free_region == nullptr) free_region = &region;
    if (region.bytes != 0 && begin < region.base + region.bytes && region.base < begin + bytes) {
      return OFFPATH_ERR_ARGUMENT;
    }
  }
  if (free_region == nullptr) return OFFPATH_ERR_NO_MEMORY;
  *free_region = {begin, bytes};
  return OFFPATH_OK;
}

offpath_status_t offpath_window_detach(offpath_window_t* window, void* base) {
  const Guard guard(window->own());
  for (Region& region : window->own().regions) {
    if (region.bytes == 0 || region.base != reinterpret_cast<uint64_t>(base)) continue;
    region = {};
    return OFFPATH_OK;
  }
  return OFFPATH_ERR_ARGUMENT;
}

offpath_status_t offpath_remote(offpath_window_t* window, const offpath_remote_t* what, offpath_op_t** op) {
  std::lock_guard lock(window->team->session->mutex);
  offpath_session* session = window->team->session;
  static const fake::Loss loss = fake::loss_from("OFFPATH_FAKE_LOSE_REMOTE");
  static long posted = 0;
  if (loss.mine && ++posted == loss.after && !session->lost) {
    session->lost = true;
    for (offpath_team* team : session->teams) team->own().lost = 1;
  }
  if (session->lost || offpath_team_broken(window->team) != 0) return OFFPATH_ERR_NOT_STARTED;
  auto remote = std::make_shared<fake::Remote>();
  remote->window = window;
  remote->what = *what;
  const auto layout = [&](uint32_t k) { return k == 0 ? nullptr : &what->layouts[k - 1]; };
  const auto address = [](const offpath_block_t& block) { return reinterpret_cast<uint64_t>(block.address); };
  const Part& there = window->board->parts[what->target];
  const uint64_t base = there.dynamic ? 0 : there.regions[0].base;
  remote->target = runs_of(base + what->target_offset, what->target_bytes, layout(what->target_layout));
  if (what->send.bytes > 0) remote->send = runs_of(address(what->send), what->send.bytes, layout(what->send.layout));
  if (what->result.bytes > 0) {
    remote->result = runs_of(address(what->result), what->result.bytes, layout(what->result.layout));
  }
  if (what->send.layout == 0 && what->send.bytes <= OFFPATH_REMOTE_INLINE_BYTES) {
    remote->copied.assign(static_cast<const char*>(what->send.address),
                          static_cast<const char*>(what->send.address) + what->send.bytes);
  }
  if (what->kind == OFFPATH_UNLOCK) remote->tests = kAtOnce;  // nobody may ever ask for it
  window->posted.push_back(remote);
  ++window->issued;
  ++session->posted;
  if (what->kind == OFFPATH_UNLOCK) move_on(window);
  if (op != nullptr) *op = fake::op_of(window->team, std::move(remote));
  return OFFPATH_OK;
}

uint64_t offpath_window_issued(const offpath_window_t* window) { return window->issued; }
uint64_t offpath_window_completed(const offpath_window_t* window) { return window->completed; }

offpath_status_t offpath_window_flush_test(offpath_window_t* window) {
  std::lock_guard lock(window->team->session->mutex);
  move_on(window);
  if (!window->posted.empty()) return OFFPATH_IN_PROGRESS;
  return std::exchange(window->failure, OFFPATH_OK);
}

offpath_status_t offpath_window_flush(offpath_window_t* window, uint64_t) {
  for (;;) {
    const offpath_status_t status = offpath_window_flush_test(window);
    if (status != OFFPATH_IN_PROGRESS) return status;
    usleep(20);
  }
}

}  // extern "C"

// It keeps nothing: what its loss ends is an error.
namespace offpath::client {

uint32_t keeping_flag() { return 0; }
bool may_have_kept(const offpath_window_t*) { return false; }
std::vector<Kept> take_kept(offpath_window_t*) { return {}; }
offpath_status_t give_up(offpath_window_t*, offpath_op_t**) { return OFFPATH_ERR_SERVICE_LOST; }
uint64_t sequence_of(const offpath_op_t*) { return 0; }
std::span<uint8_t> journal_of(const offpath_window_t*) { return {}; }
void give_up(offpath_team_t*) {}
bool leaves(const offpath_session_t*) { return false; }
uint32_t ask(offpath_session_t*) { return 0; }
bool has_answered(const offpath_session_t*, uint32_t) { return true; }
void stay(offpath_session_t*) {}
void need_not_stay(offpath_session_t*) {}
offpath_status_t next_session(offpath_session_t*, offpath_session_t**) { return OFFPATH_ERR_NO_SERVICE; }
void* reserve(offpath_session_t*, uint64_t) { return nullptr; }
bool may_lack_pages() { return false; }
bool provide(offpath_session_t*, const void*, uint64_t) { return false; }
void empty(offpath_session_t*, void*, uint64_t) {}

}  // namespace offpath::client
