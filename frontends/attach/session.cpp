// SPDX-License-Identifier: BSD-3-Clause
#include "attach/session.hpp"

#include "attach/directory.hpp"
#include "base/random.hpp"

#include <dlfcn.h>

#include <cstring>

namespace offpath::attach {

void Terms::propose(const Settings& settings) {
  const auto other = reinterpret_cast<int (*)(uint8_t*)>(dlsym(RTLD_DEFAULT, "offpath_frontend_job_token"));
  if (other == nullptr || other(token) == 0) base::fill_random(token, sizeof(token));
  share_cores = settings.share_cores ? 1 : 0;
  cores_given = settings.service_cores.empty() ? 0 : 1;
  problem[0] = '\0';
}

offpath_error_t open_session(const Terms& terms, const std::string& service_cores, const Surroundings& around,
                             offpath_session_t** session) {
  offpath_attach_params_t params{};
  params.struct_bytes = sizeof(params);
  memcpy(params.job_token, terms.token, sizeof(params.job_token));
  params.service_cores = service_cores.empty() ? nullptr : service_cores.c_str();
  params.flags = around.nodes == 1 ? OFFPATH_ATTACH_NODE_ONLY : 0;
  params.node_sessions_count = around.neighbours;
  offpath_error_t error{};
  error.status = offpath_session_attach(&params, session, &error);
  if (error.status != OFFPATH_OK) *session = nullptr;
  return error;
}

offpath_status_t address_of(offpath_session_t* session, Address* address) {
  size_t bytes = 0;
  const offpath_status_t status = offpath_session_address(session, address->data.data(), address->data.size(), &bytes);
  address->bytes = static_cast<uint32_t>(bytes);
  return status;
}

offpath_status_t create_team(offpath_session_t* session, std::span<const uint8_t, OFFPATH_TEAM_ID_BYTES> id, int rank,
                             const Directory& members, offpath_team_t** team, offpath_error_t* error,
                             const char* compress) {
  offpath_team_params_t params{};
  params.struct_bytes = sizeof(params);
  params.rank = static_cast<uint32_t>(rank);
  params.size = static_cast<uint32_t>(members.size());
  params.compress = compress;
  memcpy(params.id, id.data(), id.size());
  offpath_directory_t directory{};
  directory.struct_bytes = sizeof(directory);
  directory.count = members.addresses_count();
  directory.stride_bytes = members.stride_bytes();
  directory.addresses = members.addresses();
  directory.number_of = members.number_of();
  return offpath_team_create_numbered(session, &params, &directory, team, error);
}

}  // namespace offpath::attach
