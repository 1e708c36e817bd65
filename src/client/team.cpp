// SPDX-License-Identifier: BSD-3-Clause
#include "base/result.hpp"
#include "client/session.hpp"
#include "session/member_address.hpp"

#include <algorithm>
#include <cstring>
#include <set>

using offpath::base::ErrnoGuard;
using offpath::base::Status;
namespace layout = offpath::session;

void offpath_session::release_team(offpath_team* team) {
  arena.release(team->record, sizeof(layout::TeamRecord));
  arena.release(team->addresses, team->addresses_bytes);
  arena.release(team->lost, team->size);
  std::erase_if(teams, [&](const auto& owned) { return owned.get() == team; });
}

namespace {

// An operation of ours on a team, which nobody waits for.
offpath_status_t post_silent(offpath_session& session, offpath_team& team, layout::OpKind kind) {
  auto op = std::make_unique<offpath_op>();
  op->session = &session;
  op->team = &team;
  op->kind = kind;
  return session.post(std::move(op), nullptr);
}

Status count_nodes(const offpath_team_params_t& params, uint32_t& nodes) {
  std::set<layout::ServiceId> services;
  const auto* addresses = static_cast<const uint8_t*>(params.addresses);
  for (uint32_t rank = 0; rank < params.size; ++rank) {
    const auto address = layout::MemberAddress::decode(
        std::span(addresses + size_t{rank} * params.address_stride_bytes, params.address_stride_bytes));
    if (!address.ok()) return address.status();
    services.insert(address.value().service);
  }
  // In their order the names of jobs come first.
  if (!std::equal(services.begin()->begin(), services.begin()->begin() + layout::kJobNameBytes,
                  services.rbegin()->begin())) {
    return Status::error(OFFPATH_ERR_PERMISSION,
                         "the members' services do not know the same secret (they would not talk to each other). Set "
                         "OFFPATH_JOB_SECRET to the same for all ranks, or for none");
  }
  nodes = static_cast<uint32_t>(services.size());
  return {};
}

Status create(offpath_session& session, const offpath_team_params_t& params, offpath_team** out) {
  if (params.struct_bytes != sizeof(params) || params.size == 0 || params.rank >= params.size ||
      params.addresses == nullptr || params.address_stride_bytes == 0 ||
      params.address_stride_bytes > OFFPATH_ADDRESS_MAX_BYTES) {
    return Status::error(OFFPATH_ERR_ARGUMENT, "offpath_team_create: rank %u of %u members, stride %u is impossible",
                         params.rank, params.size, params.address_stride_bytes);
  }
  if (!session.mine()) return Status::error(OFFPATH_ERR_STATE, "the session belongs to the parent process");
  if (!session.check_alive()) return Status::error(OFFPATH_ERR_SERVICE_LOST, "the service on this node was lost");
  auto team = std::make_unique<offpath_team>();
  if (const Status status = count_nodes(params, team->nodes); !status.ok()) return status;
  std::lock_guard lock(session.mutex);
  team->session = &session;
  team->rank = params.rank;
  team->size = params.size;
  team->addresses_bytes = uint64_t{params.size} * params.address_stride_bytes;
  session.reap_orphans();  // of teams that were destroyed: their memory
  team->record = session.arena.allocate(sizeof(layout::TeamRecord));
  team->addresses = session.arena.allocate(team->addresses_bytes);
  team->lost = session.arena.allocate(params.size);
  offpath_team* raw = team.get();
  session.teams.push_back(std::move(team));
  if (raw->record == 0 || raw->addresses == 0 || raw->lost == 0) {
    session.release_team(raw);
    return Status::error(OFFPATH_ERR_NO_MEMORY, "no room in the session segment for a team of %u members", params.size);
  }
  layout::TeamRecord& record = session.team_record(*raw);
  memcpy(record.id, params.id, sizeof(record.id));
  record.rank = params.rank;
  record.size = params.size;
  record.address_stride = params.address_stride_bytes;
  record.broken.store(0, std::memory_order_relaxed);
  record.started.store(0, std::memory_order_relaxed);
  record.addresses = raw->addresses;
  record.lost = raw->lost;
  memset(record.compress, 0, sizeof(record.compress));
  if (params.compress != nullptr) strncpy(record.compress, params.compress, sizeof(record.compress) - 1);
  memcpy(session.at<uint8_t>(raw->addresses), params.addresses, raw->addresses_bytes);
  memset(session.at<uint8_t>(raw->lost), 0, raw->size);
  post_silent(session, *raw, layout::OpKind::team_create);
  *out = raw;
  return {};
}

}  // namespace

extern "C" {

offpath_status_t offpath_team_create(offpath_session_t* session, const offpath_team_params_t* params,
                                     offpath_team_t** team, offpath_error_t* error) {
  ErrnoGuard guard;
  if (session == nullptr || params == nullptr || team == nullptr) return OFFPATH_ERR_ARGUMENT;
  *team = nullptr;
  const Status status = create(*session, *params, team);
  status.copy_to(error);
  return status.code();
}

void offpath_team_destroy(offpath_team_t* team) {
  if (team == nullptr || !team->session->mine()) return;
  ErrnoGuard guard;
  offpath_session& session = *team->session;
  std::lock_guard lock(session.mutex);
  team->destroyed = true;
  if (session.check_alive()) {
    post_silent(session, *team, layout::OpKind::team_destroy);
  } else if (team->unfinished == 0) {
    session.release_team(team);
  }
}

uint32_t offpath_team_nodes(const offpath_team_t* team) { return team->nodes; }

int offpath_team_broken(const offpath_team_t* team) {
  return team->session->lost.load(std::memory_order_relaxed) ||
                 team->session->team_record(*team).broken.load(std::memory_order_acquire) != 0
             ? 1
             : 0;
}

void offpath_team_lost(const offpath_team_t* team, uint8_t* lost) {
  memcpy(lost, team->session->at<uint8_t>(team->lost), team->size);
  if (team->session->lost.load(std::memory_order_relaxed))
    lost[team->rank] = team->session->silence_ms == 0 ? OFFPATH_LOSS_SERVICE : OFFPATH_LOSS_SILENCE;
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
