// SPDX-License-Identifier: BSD-3-Clause
// A collective call that the service can do: what it needs to know for that, and for doing it natively after all. A
// persistent collective has one for all its starts.
//
// A collective is a row of native/collectives.def: its name in the policy, its native
// functions, and how it is described. Its handlers (collectives/forms.hpp) follow from that.
#pragma once

#include "mpi/adapt/adapter.hpp"
#include "mpi/calls/side.hpp"
#include "mpi/native/arguments.hpp"
#include "policy/policy.hpp"

#include <mpi.h>
#include <offpath/offpath.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace offpath::mpi {

struct Collective {
  policy::Collective id;
  // The native nonblocking function.
  int issue(const Arguments& arguments, MPI_Comm comm, MPI_Request* request) const {
    return (arguments.large ? issue_large : issue_small)(arguments, comm, request);
  }
  using Issue = int(const Arguments& arguments, MPI_Comm comm, MPI_Request* request);
  Issue* issue_small;
  Issue* issue_large;  // nullptr: it has no counts
};

// How often a call is carried out: a persistent one many times.
enum class Use : uint8_t { once, many };

struct Call {
  Call(const Collective& kind, const Arguments& given, Use how_often)
      : collective(&kind), use(how_often), pairwise(policy::is_irregular(kind.id)), arguments(given) {}

  const Collective* collective;
  Use use;
  // Irregular: an exchange of blocks, of which each goes its own way, by its size (docs/design/0005-pairwise.md).
  bool pairwise;
  Arguments arguments;  // lead to what the sides keep
  offpath_algorithm_t algorithm = OFFPATH_ALGORITHM_DEFAULT;
  offpath_operator_t op = OFFPATH_OP_NONE;
  offpath_element_t element = OFFPATH_ELEMENT_NONE;
  std::vector<uint64_t> counts_bytes;
  // The send side is what lay in the receive buffer, always staged: the operation can be done again although the buffer
  // was written to.
  bool in_place = false;
  Side send;
  Side recv;

  uint64_t asked_bytes = 0;  // what the policy was asked with
  std::optional<Ask> open;   // its path is still to be decided
  bool on_council = false;   // native, but not on the caller's communicator (adapt/adapter.hpp)
  bool by_policy = false;    // it is native because the policy says so
  bool is_behind = false;  // others wait for their path, and it starts after them: perhaps when the caller has all back

  // Makes `side` independent of what the caller states where that is still needed when the caller has it back.
  // `stated`: what a native call would be given of it, if any. False: it failed.
  bool keep(Side& side, Stated* stated, int entries);
  // Whether this rank has a part in it at the service.
  bool uses_service() const { return !pairwise || send.uses_service() || recv.uses_service(); }
};

}  // namespace offpath::mpi
