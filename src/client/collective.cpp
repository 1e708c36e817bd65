// SPDX-License-Identifier: BSD-3-Clause
#include "client/collective.hpp"

#include "base/result.hpp"
#include "client/described.hpp"

namespace offpath::client {

offpath_status_t post_collective(offpath_team& team, const offpath_collective_t& collective, const char* name,
                                 std::unique_ptr<uint8_t[]> staging, offpath_op** out) {
  collective::Collective described;
  const offpath_status_t checked = describe(collective, team.rank, team.size, described);
  if (checked != OFFPATH_OK) return checked;
  OwnBlocks own = own_blocks(described, team.rank);
  offpath_session& session = *team.session;
  auto op = std::make_unique<offpath_op>(team, session::OpKind::collective,
                                         name != nullptr ? name : collective::name_of(collective.kind));
  const size_t counters_bytes = team.size * sizeof(uint32_t);  // the member's (Slot::open)
  op->record = encode(described, counters_bytes);
  op->record.resize(op->record.size() + counters_bytes);
  if (op->record.size() > session::kSegmentBytes) return OFFPATH_ERR_NO_MEMORY;
  const bool passing = staging != nullptr;
  op->staging = std::move(staging);
  // On shared cores the caller's memcpy is cheaper than the service's two system calls.
  const bool shares_cores = (session.service.flags & session::kServiceSharesCores) != 0;
  if (shares_cores && own.contiguous && !own.copies.empty()) {
    op->flags |= session::kOwnBlockByClient;
    op->own_copies = std::move(own.copies);
  }
  if (collective.ends == OFFPATH_ENDS_TOGETHER) op->flags |= session::kTogether;
  if (collective.ends == OFFPATH_ENDS_BY_PAIRS) op->flags |= session::kByPairs;
  moved::Named named;
  if (session.moved_memory != nullptr) named = moved::named_by(collective, passing);
  std::lock_guard lock(session.mutex);
  session.use_memory(std::move(named), session.has_gate(team));
  return session.post(std::move(op), out);
}

}  // namespace offpath::client

extern "C" offpath_status_t offpath_collective(offpath_team_t* team, const offpath_collective_t* collective,
                                               offpath_op_t** out) {
  if (team == nullptr || collective == nullptr || out == nullptr) return OFFPATH_ERR_ARGUMENT;
  offpath::base::ErrnoGuard guard;
  *out = nullptr;
  if (!team->session->mine()) return OFFPATH_ERR_STATE;
  return offpath::client::post_collective(*team, *collective, nullptr, nullptr, out);
}
