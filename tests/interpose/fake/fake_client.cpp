// SPDX-License-Identifier: BSD-3-Clause
// A client library without a service, for tests of the MPI front end on one machine: each rank pulls its peers' blocks
// itself, from within offpath_op_test. It is slow on purpose and can lose its "service" at an exact operation, which
// makes every path of the front end's recovery reachable without timing.
//
//   OFFPATH_FAKE_DELAY=N          tests before an operation starts to move (default 3)
//   OFFPATH_FAKE_DEPTH=N          operations a team may have under way before posting is refused (default and at most
//   16) OFFPATH_FAKE_LOSE=r:p:b,...   world rank r loses its service when its p-th operation on a team is posted, of
//   which b
//                                 were begun
//   OFFPATH_FAKE_NO_ATTACH=r      world rank r cannot attach
#include <offpath/offpath.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kMaxMembers = 64;
constexpr uint32_t kRing = 16;

struct Slot {
  std::atomic<uint64_t> base;   // of the data to send, in the member's address space
  std::atomic<uint64_t> bytes;  // address of an array, one entry per peer
  std::atomic<uint64_t> displs;
  std::atomic<uint64_t> pulled_by;
};

struct Member {
  std::atomic<int> pid;
  std::atomic<uint64_t> visible;  // operations the peers may pull from
  std::atomic<uint64_t> started;
  std::atomic<int> lost;
  Slot ring[kRing];
};

struct Board {
  Member members[kMaxMembers];
};

long number_from(const char* name, long fallback) {
  const char* text = getenv(name);
  return text == nullptr ? fallback : atol(text);
}

long world_rank() {
  const long rank = number_from("OMPI_COMM_WORLD_RANK", -1);
  return rank >= 0 ? rank : number_from("PMI_RANK", 0);
}

}  // namespace

struct offpath_session {
  std::mutex mutex;
  std::vector<offpath_team*> teams;
  std::atomic<bool> lost{false};
  std::atomic<uint32_t> events{0};
  uint64_t posted = 0;
  uint64_t completed = 0;
  uint64_t failed = 0;
  bool will_lose = false;
  uint64_t lose_after = 0;
  uint64_t lose_begun = 0;
  std::string prefix;
};

struct offpath_team {
  offpath_session* session = nullptr;
  Board* board = nullptr;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint64_t posted = 0;
  std::vector<bool> in_use = std::vector<bool>(kRing);
  std::string path;
};

struct offpath_op {
  offpath_team* team;
  uint64_t number;
  long tests = 0;
  offpath_status_t status = OFFPATH_IN_PROGRESS;
  std::vector<char> copy;  // of the data to send, in place
  std::vector<uint64_t> send_bytes, recv_bytes;
  std::vector<int64_t> send_displs, recv_displs;
  char* recv;
  std::vector<bool> pulled;
};

namespace {

void lose(offpath_session* session, const offpath_team* on, uint64_t begun) {
  session->lost = true;
  for (offpath_team* team : session->teams) {
    Member& own = team->board->members[team->rank];
    own.started = team == on ? begun : team->posted;
    own.lost = 1;
  }
}

offpath_status_t end(offpath_op* op, offpath_status_t status) {
  op->status = status;
  op->team->session->events.fetch_add(1);
  (status == OFFPATH_OK ? op->team->session->completed : op->team->session->failed) += 1;
  op->team->in_use[op->number % kRing] = false;
  return status;
}

bool read_remote(int pid, uint64_t from, void* to, uint64_t bytes) {
  while (bytes > 0) {
    iovec local{to, bytes};
    iovec remote{reinterpret_cast<void*>(from), bytes};
    const ssize_t moved = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (moved <= 0) return false;
    from += static_cast<uint64_t>(moved);
    to = static_cast<char*>(to) + moved;
    bytes -= static_cast<uint64_t>(moved);
  }
  return true;
}

offpath_status_t pull(offpath_op* op, uint32_t peer) {
  offpath_team* team = op->team;
  Member& other = team->board->members[peer];
  Slot& slot = other.ring[op->number % kRing];
  const int pid = other.pid;
  uint64_t bytes = 0;
  int64_t displ = 0;
  if (!read_remote(pid, slot.bytes + team->rank * sizeof(bytes), &bytes, sizeof(bytes)) ||
      !read_remote(pid, slot.displs + team->rank * sizeof(displ), &displ, sizeof(displ))) {
    return OFFPATH_ERR_INTERNAL;
  }
  if (bytes > op->recv_bytes[peer]) return OFFPATH_ERR_TRUNCATED;
  char* to = op->recv + op->recv_displs[peer];
  if (!read_remote(pid, slot.base + static_cast<uint64_t>(displ), to, bytes)) return OFFPATH_ERR_MEMORY_FAULT;
  slot.pulled_by.fetch_add(1);
  op->pulled[peer] = true;
  return OFFPATH_OK;
}

offpath_status_t test(offpath_op* op) {
  if (op->status != OFFPATH_IN_PROGRESS) return op->status;
  offpath_team* team = op->team;
  Member& own = team->board->members[team->rank];
  if (own.lost != 0) {
    return end(op, op->number < own.started ? OFFPATH_ERR_SERVICE_LOST : OFFPATH_ERR_NOT_STARTED);
  }
  static const long delay = number_from("OFFPATH_FAKE_DELAY", 3);
  if (++op->tests <= delay) return OFFPATH_IN_PROGRESS;
  bool all_pulled = true;
  for (uint32_t peer = 0; peer < team->size; ++peer) {
    if (op->pulled[peer]) continue;
    Member& other = team->board->members[peer];
    if (other.lost != 0) {
      return end(op, op->number < other.started ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
    }
    if (other.visible.load(std::memory_order_acquire) <= op->number) {
      all_pulled = false;
      continue;
    }
    const auto status = pull(op, peer);
    // What was read while the peer lost its service may be anything.
    if (other.lost != 0) return end(op, op->number < other.started ? OFFPATH_ERR_PEER_LOST : OFFPATH_ERR_NOT_STARTED);
    if (status != OFFPATH_OK) return end(op, status);
  }
  if (!all_pulled) return OFFPATH_IN_PROGRESS;
  if (own.ring[op->number % kRing].pulled_by.load() == team->size) return end(op, OFFPATH_OK);
  for (uint32_t peer = 0; peer < team->size; ++peer) {
    if (team->board->members[peer].lost != 0) return end(op, OFFPATH_ERR_PEER_LOST);
  }
  return OFFPATH_IN_PROGRESS;
}

offpath_status_t post(offpath_team* team, const void* send, offpath_op* prepared, offpath_op_t** out) {
  std::unique_ptr<offpath_op> op(prepared);
  std::lock_guard lock(team->session->mutex);
  Member& own = team->board->members[team->rank];
  if (team->session->lost || offpath_team_broken(team) != 0) return OFFPATH_ERR_NOT_STARTED;
  static const long depth = std::min<long>(number_from("OFFPATH_FAKE_DEPTH", kRing), kRing);
  const auto under_way = std::count(team->in_use.begin(), team->in_use.end(), true);
  if (under_way >= depth || team->in_use[team->posted % kRing]) return OFFPATH_ERR_NO_MEMORY;
  op->team = team;
  op->number = team->posted;
  op->pulled.resize(team->size);
  if (send == OFFPATH_IN_PLACE) {
    op->send_bytes = op->recv_bytes;
    op->send_displs.assign(team->size, 0);
    uint64_t total = 0;
    for (const uint64_t bytes : op->recv_bytes) total += bytes;
    op->copy.resize(total + 1);
    uint64_t at = 0;
    for (uint32_t i = 0; i < team->size; ++i) {
      op->send_displs[i] = static_cast<int64_t>(at);
      if (op->recv_bytes[i] > 0) memcpy(&op->copy[at], op->recv + op->recv_displs[i], op->recv_bytes[i]);
      at += op->recv_bytes[i];
    }
    send = op->copy.data();
  }
  Slot& slot = own.ring[op->number % kRing];
  slot.base = reinterpret_cast<uint64_t>(send);
  slot.bytes = reinterpret_cast<uint64_t>(op->send_bytes.data());
  slot.displs = reinterpret_cast<uint64_t>(op->send_displs.data());
  slot.pulled_by = 0;
  team->in_use[op->number % kRing] = true;
  ++team->posted;
  ++team->session->posted;
  const bool losing = team->session->will_lose && team->posted >= team->session->lose_after;
  if (!team->session->will_lose || team->posted <= team->session->lose_begun) {
    own.visible.store(team->posted, std::memory_order_release);
  }
  if (losing) lose(team->session, team, std::min(team->session->lose_begun, team->posted));
  *out = op.release();
  return OFFPATH_OK;
}

}  // namespace

extern "C" {

offpath_status_t offpath_session_attach(const offpath_attach_params_t* params, offpath_session_t** session,
                                        offpath_error_t* error) {
  const long rank = world_rank();
  if (number_from("OFFPATH_FAKE_NO_ATTACH", -1) == rank) {
    error->status = OFFPATH_ERR_NO_SERVICE;
    snprintf(error->text, sizeof(error->text), "the fake service refuses rank %ld. Unset OFFPATH_FAKE_NO_ATTACH", rank);
    return OFFPATH_ERR_NO_SERVICE;
  }
  auto* made = new offpath_session;
  const char* folder = getenv("OFFPATH_RUNTIME_DIR");
  made->prefix = std::string(folder == nullptr ? "/tmp" : folder) + "/offpath-fake-";
  for (int i = 0; i < 8; ++i) {
    char hex[3];
    snprintf(hex, sizeof(hex), "%02x", params->job_token[i]);
    made->prefix += hex;
  }
  for (const char* item = getenv("OFFPATH_FAKE_LOSE"); item != nullptr && *item != '\0';) {
    unsigned long who = 0, after = 0, begun = 0;
    if (sscanf(item, "%lu:%lu:%lu", &who, &after, &begun) == 3 && static_cast<long>(who) == rank) {
      made->will_lose = true;
      made->lose_after = after;
      made->lose_begun = begun;
    }
    item = strchr(item, ',');
    if (item != nullptr) ++item;
  }
  *session = made;
  return OFFPATH_OK;
}

void offpath_session_detach(offpath_session_t* session) { delete session; }

offpath_status_t offpath_session_address(offpath_session_t*, void* address, size_t, size_t* address_bytes) {
  memset(address, 0, 8);
  *address_bytes = 8;
  return OFFPATH_OK;
}

int offpath_session_alive(offpath_session_t* session) { return session->lost ? 0 : 1; }
uint32_t offpath_session_events(offpath_session_t* session) { return session->events; }

offpath_status_t offpath_session_sleep(offpath_session_t* session, uint32_t seen, uint64_t timeout_ns) {
  if (session->events != seen) return OFFPATH_OK;
  if (session->lost) return OFFPATH_ERR_SERVICE_LOST;
  usleep(static_cast<useconds_t>(std::min<uint64_t>(timeout_ns / 1000, 50)));
  return OFFPATH_IN_PROGRESS;
}

offpath_status_t offpath_session_counters(offpath_session_t* session, offpath_session_counters_t* counters) {
  counters->service_pid = session->lost ? 0 : static_cast<uint32_t>(getpid());
  counters->posted_count = session->posted;
  counters->completed_count = session->completed;
  counters->failed_count = session->failed;
  return OFFPATH_OK;
}

offpath_status_t offpath_team_create(offpath_session_t* session, const offpath_team_params_t* params,
                                     offpath_team_t** team, offpath_error_t*) {
  if (params->size > kMaxMembers) return OFFPATH_ERR_ARGUMENT;
  auto* made = new offpath_team;
  made->session = session;
  made->rank = params->rank;
  made->size = params->size;
  made->path = session->prefix + "-";
  for (const uint8_t byte : params->id) {
    char hex[3];
    snprintf(hex, sizeof(hex), "%02x", byte);
    made->path += hex;
  }
  const int fd = open(made->path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Board)) != 0) return OFFPATH_ERR_NO_MEMORY;
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return OFFPATH_ERR_NO_MEMORY;
  made->board = static_cast<Board*>(memory);
  made->board->members[params->rank].pid = getpid();
  std::lock_guard lock(session->mutex);
  session->teams.push_back(made);
  *team = made;
  return OFFPATH_OK;
}

void offpath_team_destroy(offpath_team_t* team) {
  if (team == nullptr) return;
  unlink(team->path.c_str());
  std::lock_guard lock(team->session->mutex);
  std::erase(team->session->teams, team);
}

uint32_t offpath_team_nodes(const offpath_team_t*) { return 1; }

int offpath_team_broken(const offpath_team_t* team) {
  for (uint32_t i = 0; i < team->size; ++i) {
    if (team->board->members[i].lost != 0) return 1;
  }
  return 0;
}

void offpath_team_lost(const offpath_team_t* team, uint8_t* lost) {
  for (uint32_t i = 0; i < team->size; ++i) lost[i] = team->board->members[i].lost != 0;
}

uint64_t offpath_team_started(const offpath_team_t* team) {
  const Member& own = team->board->members[team->rank];
  return own.lost != 0 ? own.started.load() : team->posted;
}

offpath_status_t offpath_alltoall(offpath_team_t* team, const void* send, void* recv, uint64_t bytes,
                                  offpath_op_t** op) {
  auto* made = new offpath_op;
  made->recv = static_cast<char*>(recv);
  made->send_bytes.assign(team->size, bytes);
  made->recv_bytes.assign(team->size, bytes);
  for (uint32_t i = 0; i < team->size; ++i) made->recv_displs.push_back(static_cast<int64_t>(i * bytes));
  made->send_displs = made->recv_displs;
  return post(team, send, made, op);
}

offpath_status_t offpath_alltoallv(offpath_team_t* team, const void* send, const uint64_t* send_bytes,
                                   const int64_t* send_displs, void* recv, const uint64_t* recv_bytes,
                                   const int64_t* recv_displs, offpath_op_t** op) {
  auto* made = new offpath_op;
  made->recv = static_cast<char*>(recv);
  made->recv_bytes.assign(recv_bytes, recv_bytes + team->size);
  made->recv_displs.assign(recv_displs, recv_displs + team->size);
  if (send != OFFPATH_IN_PLACE) {
    made->send_bytes.assign(send_bytes, send_bytes + team->size);
    made->send_displs.assign(send_displs, send_displs + team->size);
  }
  return post(team, send, made, op);
}

offpath_status_t offpath_op_test(offpath_op_t* op) {
  std::lock_guard lock(op->team->session->mutex);
  return test(op);
}

offpath_status_t offpath_op_help(offpath_op_t* op) { return offpath_op_test(op); }

offpath_status_t offpath_op_wait(offpath_op_t* op, uint64_t) {
  for (;;) {
    const offpath_status_t status = offpath_op_test(op);
    if (status != OFFPATH_IN_PROGRESS) return status;
    usleep(20);
  }
}

void offpath_op_describe(offpath_op_t*, char* text, size_t capacity) { snprintf(text, capacity, "fake"); }

void offpath_op_free(offpath_op_t* op) {
  if (op == nullptr || op->status != OFFPATH_OK) return;  // peers may still read the arrays of a failed one
  delete op;
}

}  // extern "C"
