// SPDX-License-Identifier: BSD-3-Clause
// Sessions and teams of the fake client.
#include "fake.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fake {

long number_from(const char* name, long fallback) {
  const char* text = getenv(name);
  return text == nullptr ? fallback : atol(text);
}

namespace {

long world_rank() {
  const long rank = number_from("OMPI_COMM_WORLD_RANK", -1);
  return rank >= 0 ? rank : number_from("PMI_RANK", 0);
}

}  // namespace

Loss loss_from(const char* name) {
  long who = 0, after = 0;
  const char* text = getenv(name);
  if (text == nullptr || sscanf(text, "%ld:%ld", &who, &after) != 2) return {};
  return {who == world_rank(), after};
}

const Parting& parting() {
  static const Parting chosen = [] {
    unsigned long operation = 0, who = 0;
    const char* text = getenv("OFFPATH_FAKE_PART");
    if (text == nullptr || sscanf(text, "%lu:%lu", &operation, &who) != 2) return Parting{};
    return Parting{operation - 1, static_cast<long>(who) == world_rank()};
  }();
  return chosen;
}

namespace {

std::string hex(const uint8_t* bytes, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    char digits[3];
    snprintf(digits, sizeof(digits), "%02x", bytes[i]);
    text += digits;
  }
  return text;
}

}  // namespace
}  // namespace fake

using fake::Board;

extern "C" {

offpath_status_t offpath_session_attach(const offpath_attach_params_t* params, offpath_session_t** session,
                                        offpath_error_t* error) {
  const long rank = fake::world_rank();
  if (fake::number_from("OFFPATH_FAKE_NO_ATTACH", -1) == rank) {
    error->status = OFFPATH_ERR_NO_SERVICE;
    snprintf(error->text, sizeof(error->text), "the fake service refuses rank %ld. Unset OFFPATH_FAKE_NO_ATTACH", rank);
    return OFFPATH_ERR_NO_SERVICE;
  }
  auto* made = new offpath_session;
  const char* folder = getenv("OFFPATH_RUNTIME_DIR");
  made->prefix = std::string(folder == nullptr ? "/tmp" : folder) + "/offpath-fake-" + fake::hex(params->job_token, 8);
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
int offpath_session_holds_back(offpath_session_t*) { return 0; }
int offpath_session_busy(offpath_session_t*) { return 1; }
int offpath_session_used(offpath_session_t* session) { return session->events != 0 ? 1 : 0; }
int offpath_session_shares_memory(offpath_session_t*) { return 1; }
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

offpath_status_t offpath_team_create_numbered(offpath_session_t* session, const offpath_team_params_t* params,
                                              const offpath_directory_t*, offpath_team_t** team, offpath_error_t*) {
  if (params->size > fake::kMaxMembers) return OFFPATH_ERR_ARGUMENT;
  auto* made = new offpath_team;
  made->session = session;
  made->rank = params->rank;
  made->size = params->size;
  made->path = session->prefix + "-" + fake::hex(params->id, OFFPATH_TEAM_ID_BYTES);
  const int fd = open(made->path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, sizeof(Board)) != 0) return OFFPATH_ERR_NO_MEMORY;
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return OFFPATH_ERR_NO_MEMORY;
  made->board = static_cast<Board*>(memory);
  made->own().pid = getpid();
  std::lock_guard lock(session->mutex);
  if (session->lost) made->own().lost = 1;  // the others cannot reach it
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
  if (team->is_parted()) return 1;
  for (uint32_t i = 0; i < team->size; ++i) {
    if (team->board->members[i].lost != 0) return 1;
  }
  return 0;
}

void offpath_team_lost(const offpath_team_t* team, uint8_t* lost) {
  for (uint32_t i = 0; i < team->size; ++i) {
    const bool parted = team->is_parted() && i != team->rank;
    const offpath_loss_t other = parted ? OFFPATH_LOSS_SILENCE : OFFPATH_LOSS_NONE;
    lost[i] = team->board->members[i].lost != 0 ? OFFPATH_LOSS_SERVICE : other;
  }
}

uint64_t offpath_team_started(const offpath_team_t* team) {
  return team->own().lost != 0 ? team->own().started.load() : team->posted;
}

void offpath_team_skip(offpath_team_t* team, uint64_t count) {
  std::lock_guard lock(team->session->mutex);
  team->posted += count;
}

void offpath_memory_keep(offpath_session_t*, const void*, uint64_t) {}
offpath_status_t offpath_memory_allocate(offpath_session_t*, uint64_t, void**) { return OFFPATH_ERR_NO_MEMORY; }
void offpath_memory_free(offpath_session_t*, void*) {}
void offpath_memory_release(offpath_session_t*, const void*, uint64_t) {}
offpath_status_t offpath_memory_lend(offpath_session_t*, uint64_t, uint64_t, void**) { return OFFPATH_ERR_STATE; }
int offpath_memory_take_back(void*) { return 0; }
int64_t offpath_session_saved_ns(offpath_session_t*) { return 0; }
uint64_t offpath_session_starved_ns(offpath_session_t*) {
  return static_cast<uint64_t>(fake::number_from("OFFPATH_FAKE_STARVED_MS", 0)) * 1000000;
}
uint32_t offpath_session_moved(offpath_session_t*, offpath_moved_t*, uint32_t) { return 0; }

}  // extern "C"
