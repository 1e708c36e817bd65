// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"
#include "client/given_up.hpp"
#include "client/session.hpp"

#include <cstring>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace layout = offpath::session;

void offpath_session::release_team(offpath_team* team) {
  arena.release(team->record, sizeof(layout::TeamRecord));
  address_tables.release(arena, team->addresses);
  arena.release(team->address_of, uint64_t{team->size} * sizeof(uint32_t));
  arena.release(team->lost, team->size);
  std::erase_if(teams, [&](const auto& owned) { return owned.get() == team; });
}

namespace {

// An operation of ours on a team, which nobody waits for.
offpath_status_t post_silent(offpath_team& team, layout::OpKind kind) {
  return team.session->post(std::make_unique<offpath_op>(team, kind), nullptr);
}

Status create(offpath_session& session, const offpath_team_params_t& params, const offpath_directory_t& directory,
              offpath_team** out) {
  const bool possible = params.struct_bytes == sizeof(params) && directory.struct_bytes == sizeof(directory) &&
                        params.size > 0 && params.rank < params.size && directory.addresses != nullptr &&
                        directory.stride_bytes > 0 && directory.stride_bytes <= OFFPATH_ADDRESS_MAX_BYTES;
  if (!possible) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "offpath_team_create: rank %u of %u members, stride %u is impossible",
                         params.rank, params.size, directory.stride_bytes);
  }
  if (!session.mine()) return Status::error(OFFPATH_ERR_STATE, "the session belongs to the parent process");
  if (!session.life.check()) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the service on this node was lost");
  auto team = std::make_unique<offpath_team>();
  const auto addresses = offpath::client::compact(directory, params.size);
  if (!addresses.ok()) return addresses.status();
  std::lock_guard lock(session.mutex);
  team->session = &session;
  team->rank = params.rank;
  team->size = params.size;
  team->nodes = addresses->nodes;
  session.reap_orphans();  // of teams that were destroyed: their memory
  team->record = session.arena.allocate(sizeof(layout::TeamRecord));
  team->addresses = session.address_tables.take(session.arena, session.segment.data(), addresses->table);
  team->address_of = session.arena.allocate(uint64_t{params.size} * sizeof(uint32_t));
  team->lost = session.arena.allocate(params.size);
  offpath_team* raw = team.get();
  session.teams.push_back(std::move(team));
  if (raw->record == 0 || raw->addresses == 0 || raw->address_of == 0 || raw->lost == 0) {
    session.release_team(raw);
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no room in the session segment for a team of %u members", params.size);
  }
  layout::TeamRecord& record = session.team_record(*raw);
  memcpy(record.id, params.id, sizeof(record.id));
  record.rank = params.rank;
  record.size = params.size;
  record.address_stride = addresses->stride;
  record.broken.store(0, std::memory_order_relaxed);
  record.started.store(0, std::memory_order_relaxed);
  record.addresses = raw->addresses;
  record.addresses_count = addresses->count();
  record.address_of = raw->address_of;
  record.lost = raw->lost;
  memset(record.compress, 0, sizeof(record.compress));
  if (params.compress != nullptr) strncpy(record.compress, params.compress, sizeof(record.compress) - 1);
  memcpy(session.at<uint32_t>(raw->address_of), addresses->number_of.data(), params.size * sizeof(uint32_t));
  memset(session.at<uint8_t>(raw->lost), 0, raw->size);
  post_silent(*raw, layout::OpKind::team_create);
  *out = raw;
  return {};
}

}  // namespace

void offpath::client::give_up(offpath_team_t* team) {
  ErrnoGuard guard;
  offpath_session& session = *team->session;
  if (!session.mine()) return;
  std::lock_guard lock(session.mutex);
  if (session.life.check()) post_silent(*team, layout::OpKind::team_give_up);
}

extern "C" {

offpath_status_t offpath_team_create_numbered(offpath_session_t* session, const offpath_team_params_t* params,
                                              const offpath_directory_t* directory, offpath_team_t** team,
                                              offpath_error_t* error) {
  ErrnoGuard guard;
  if (session == nullptr || params == nullptr || directory == nullptr || team == nullptr) return OFFPATH_ERR_ARGUMENT;
  *team = nullptr;
  const Status status = create(*session, *params, *directory, team);
  status.copy_to(error);
  return status.code();
}

offpath_status_t offpath_team_create(offpath_session_t* session, const offpath_team_params_t* params,
                                     offpath_team_t** team, offpath_error_t* error) {
  if (params == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath_directory_t directory{};
  directory.struct_bytes = sizeof(directory);
  directory.count = params->size;
  directory.stride_bytes = params->address_stride_bytes;
  directory.addresses = params->addresses;
  return offpath_team_create_numbered(session, params, &directory, team, error);
}

void offpath_team_destroy(offpath_team_t* team) {
  if (team == nullptr || !team->session->mine()) return;
  ErrnoGuard guard;
  offpath_session& session = *team->session;
  std::lock_guard lock(session.mutex);
  team->destroyed = true;
  if (session.life.check()) {
    post_silent(*team, layout::OpKind::team_destroy);
  } else if (team->unfinished == 0) {
    session.release_team(team);
  }
}

uint32_t offpath_team_nodes(const offpath_team_t* team) { return team->nodes; }

int offpath_team_broken(const offpath_team_t* team) {
  return team->session->life.lost.load(std::memory_order_relaxed) ||
                 team->session->team_record(*team).broken.load(std::memory_order_acquire) != 0
             ? 1
             : 0;
}

void offpath_team_lost(const offpath_team_t* team, uint8_t* lost) {
  memcpy(lost, team->session->at<uint8_t>(team->lost), team->size);
  if (team->session->life.lost.load(std::memory_order_relaxed))
    lost[team->rank] = team->session->life.silence_ms() == 0 ? OFFPATH_LOSS_SERVICE : OFFPATH_LOSS_SILENCE;
}

uint64_t offpath_team_started(const offpath_team_t* team) {
  return team->session->team_record(*team).started.load(std::memory_order_acquire);
}

void offpath_team_skip(offpath_team_t* team, uint64_t count) {
  if (!team->session->mine()) return;
  std::lock_guard lock(team->session->mutex);
  team->next_sequence += count;
}

}  // extern "C"
