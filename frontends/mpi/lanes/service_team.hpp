// SPDX-License-Identifier: BSD-3-Clause
// The service's part of a communicator: agreed on when the communicator is made, and made itself with the first
// operation, by each rank for itself; most communicators never have one.
//
// Threads: open() and the destructor by one at a time; the rest also meanwhile.
#pragma once

#include "attach/directory.hpp"
#include "attach/loss.hpp"
#include "client/next_session.hpp"

#include <offpath/offpath.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace offpath::mpi {

class ServiceTeam {
 public:
  using Id = std::array<uint8_t, OFFPATH_TEAM_ID_BYTES>;

  // `members`: ranks in MPI_COMM_WORLD, the same on all; `rank`: which of them this is. `directory`: theirs; empty: as at
  // the beginning. `session`: this rank's, which is in it, and stays at its service as long as this needs it. What all have to agree
  // on may be said later, before anything is asked: name(), move().
  ServiceTeam(const Id& id, int rank, std::vector<int> members, attach::Directory directory,
              offpath_session_t* session);
  ~ServiceTeam();
  ServiceTeam(const ServiceTeam&) = delete;
  ServiceTeam& operator=(const ServiceTeam&) = delete;

  // Of the team that takes the place of that one.
  static void count_up(Id& id);
  void name(const Id& id) { id_ = id; }
  void move(attach::Directory directory, client::Stay stay);
  // How many there are. Any thread.
  static size_t count() { return count_.load(std::memory_order_relaxed); }

  // What this rank sends in it is compressed so (OFFPATH_COMPRESS says how that is written), if it is not made yet.
  void compress(const std::string& wish) { compress_ = wish; }
  const std::string& compress() const { return compress_; }
  // The one that takes its place: of the same members, which all make it. May throw bad_alloc.
  std::unique_ptr<ServiceTeam> next(attach::Directory directory, offpath_session_t* session) const;
  // Makes it if it is not there yet. nullptr: it cannot be made. May throw bad_alloc.
  offpath_team_t* open();
  // What is under way there ends soon, and nothing of the service works on its memory then.
  void give_up();
  offpath_session_t* session() const { return stay_.session(); }
  // This rank's service lives.
  bool alive() const { return offpath_session_alive(session()) != 0; }
  // Its members cannot all reach each other, as services were replaced meanwhile: only the next team can be made. The same on all.
  bool is_split() const { return is_split_; }
  // This rank's service serves only what it has. A load.
  bool leaves() const;
  // One of its services is known to be lost, or it is split.
  bool broken() const;
  // A member whose service this rank's has lost, if any.
  attach::Parting parting() const;
  // A member's process is known to be lost.
  bool lost_process() const { return !lost_processes().empty(); }
  // By member.
  std::vector<int> lost_processes() const;
  // How each member is known to be lost, as an offpath_loss_t.
  std::vector<uint8_t> losses() const;

 private:
  offpath_team_t* get() const { return lane_.load(std::memory_order_acquire); }

  inline static std::atomic<size_t> count_{0};

  Id id_;
  int rank_;
  std::vector<int> members_;
  attach::Directory directory_;
  bool is_split_;
  client::Stay stay_;
  std::string compress_;  // empty: as the job says
  std::atomic<offpath_team_t*> lane_{nullptr};
};

}  // namespace offpath::mpi
