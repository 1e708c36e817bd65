// SPDX-License-Identifier: BSD-3-Clause
// TeamSpec: a member of a team as the owner of its client describes it. Plain data.
#pragma once

#include "engine/core/roster.hpp"
#include "graph/request.hpp"
#include "kernels/codecs/choice.hpp"
#include "wire/message.hpp"

#include <cstdint>
#include <optional>

namespace offpath::engine {

using graph::Answer;
using graph::ClientId;
using graph::Graph;
using graph::Request;
using graph::RequestId;
using graph::Responder;
using TeamHandle = uint64_t;

struct TeamSpec {
  wire::TeamId id;
  uint32_t rank = 0;
  Roster members;
  ClientId client = 0;
  uint64_t context = 0;                       // given back in the Observer's calls
  std::optional<codecs::Wish> compress = {};  // what this member sends in it; nothing: as Config says
};

}  // namespace offpath::engine
