// SPDX-License-Identifier: BSD-3-Clause
// How the processes of a job come to their sessions: what the first of them decides for all, and what each tells the
// others about its own. Plain bytes between equal processes of one job.
#pragma once

#include "attach/settings.hpp"

#include <offpath/offpath.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace offpath::attach {

struct Terms {
  uint8_t token[OFFPATH_TOKEN_BYTES];
  uint8_t share_cores;
  uint8_t cores_given;  // OFFPATH_SERVICE_CORES is set
  char problem[254];    // with the settings; then all stays native

  // The token of another front end of this process that has a service, so that the job has one service per node
  // whoever attaches; else anew. The rest by the settings; no problem.
  void propose(const Settings& settings);
};

// Where the processes of a job are, as seen by one of them.
struct Surroundings {
  uint32_t nodes = 0;
  uint32_t neighbours = 0;  // processes on this one's node, itself included
};

struct Address {
  uint32_t bytes = 0;
  std::array<std::byte, OFFPATH_ADDRESS_MAX_BYTES> data{};
};

class Directory;

// Attaches this process, which then owns *session; null if it failed. Blocks until its service is up or known not to
// be. Its status is OFFPATH_OK: it is attached.
offpath_error_t open_session(const Terms& terms, const std::string& service_cores, const Surroundings& around,
                             offpath_session_t** session);

offpath_status_t address_of(offpath_session_t* session, Address* address);

// This process's end of a team: of that number among all members. The id is the same at all. `compress`: as of
// offpath_team_params_t.
offpath_status_t create_team(offpath_session_t* session, std::span<const uint8_t, OFFPATH_TEAM_ID_BYTES> id, int rank,
                             const Directory& members, offpath_team_t** team, offpath_error_t* error,
                             const char* compress = nullptr);

}  // namespace offpath::attach
