// SPDX-License-Identifier: BSD-3-Clause
// Active sets: the PEs of a collective, as OpenSHMEM names them. All of a set name it alike, so each makes its own end of
// the set's team when it first needs it, and nobody is asked: a team's id follows from the job's and the set.
//
// Threads: any; open and close while nobody looks.
#pragma once

#include "attach/directory.hpp"
#include "attach/nodes.hpp"

#include <offpath/offpath.h>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <mutex>

namespace offpath::shmem {

struct ActiveSet {
  int first = 0, log_stride = 0, size = 0;
  auto operator<=>(const ActiveSet&) const = default;

  // Whether all of it are PEs of a job of so many.
  bool fits(int pes) const;
  int pe(int member) const { return first + (member << log_stride); }
  // The place of a PE in it; -1: it is none of it. Of one that fits.
  int member(int pe) const;
};

struct Team {
  int size = 0;
  int member = -1;     // this PE's place
  uint32_t nodes = 0;  // that it lives on
  offpath_team_t* end = nullptr;
};

class ActiveSets {
 public:
  using Id = std::array<uint8_t, OFFPATH_TEAM_ID_BYTES>;

  // Of the job whose PEs are served at `members` and live on `nodes`.
  void open(offpath_session_t* session, int pe, const Id& id, const attach::Directory& members,
            const attach::Nodes& nodes);
  void close();
  // Null: no set of PEs of this job with this one in it. May throw bad_alloc.
  Team* find(const ActiveSet& set);
  // This PE's end of the set's team, made if it is not there. May throw bad_alloc.
  offpath_status_t make(const ActiveSet& set, Team* team);

 private:
  offpath_session_t* session_ = nullptr;
  int pe_ = 0;
  Id id_{};
  attach::Directory members_;
  attach::Nodes nodes_;
  std::mutex mutex_;
  std::map<ActiveSet, Team> teams_;
};

}  // namespace offpath::shmem
