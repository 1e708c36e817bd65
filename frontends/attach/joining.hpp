// SPDX-License-Identifier: BSD-3-Clause
// Joining a job, for every front end: its processes learn who shares a node, find the same cores for each node's
// service, attach, and tell each other the addresses of their sessions.
//
// Threads: one at a time; session(), alive() and go_on() by any, once attached.
#pragma once

#include "attach/directory.hpp"
#include "attach/exchange.hpp"
#include "attach/loss.hpp"
#include "attach/nodes.hpp"
#include "attach/session.hpp"
#include "attach/sessions.hpp"
#include "attach/settings.hpp"

#include <offpath/offpath.h>

#include <string>

namespace offpath::attach {

class Membership {
 public:
  // `process`: the front end's word for one.
  explicit Membership(const char* process) : process_(process) {}

  // Who is where. False: the exchange failed.
  bool meet(const Exchange& job, NodeRecords* records);
  // The cores of the services; the same at all. Nothing: they are found; else why there can be no service.
  std::string choose_cores(const Terms& terms, const Settings& settings, const NodeRecords& records);
  // This process attaches, unless it has, and all of `team` tell where they are. Nothing: all are attached; else why
  // not, the same at all. Blocks until the services are up or known not to be.
  std::string attach(const Terms& terms, const Exchange& team, Directory* members);
  void detach();
  // One line for the user. By the first process.
  void announce(const Settings& settings) const;

  const Nodes& nodes() const { return nodes_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // Null where there is none. The newest one: those before are lost, or leave, and stay until the end.
  offpath_session_t* session() const { return sessions_.newest(); }
  const Sessions& sessions() const { return sessions_; }
  bool alive() const { return session() != nullptr && offpath_session_alive(session()) != 0; }
  // Where the service is lost, or leaves: another one is attached to, behind this call's back. OFFPATH_OK: there is one that lives,
  // maybe the one that leaves; OFFPATH_IN_PROGRESS: not yet; else none is to be had. Never waits. `next_session`: the client's
  // (client/next_session.hpp).
  offpath_status_t go_on(offpath_status_t (*next_session)(offpath_session_t* lost, offpath_session_t** next));
  // Another service is in the place of the first one.
  bool has_gone_on() const { return sessions_.have_gone_on(); }
  // The service has cores of its own: short spinning disturbs nobody.
  bool spare_cores() const { return cores_.spare; }
  // This node's processes outnumber the cores that they are bound to.
  bool crowded() const { return cores_.crowded; }
  // From now on waits inside the native library rest, if this node's processes share cores with the service or each other, or the
  // user wants it.
  // yield_when_idle: has the library say when it finds nothing, and returns whether it did before; null: it always does.
  void rest_where_cores_are_shared(bool (*yield_when_idle)(bool)) const;
  // Of a lost service: whether another one may take its place. Not of one that was silent, as the next one may be, too, and that
  // takes long.
  bool may_go_on() const;
  // Of this process's service, which is lost.
  Loss loss() const;

 private:
  // And where its session is.
  offpath_error_t attach_itself(const Terms& terms, Address* address);

  const char* process_;
  int rank_ = 0;
  int size_ = 1;
  Nodes nodes_;
  ServiceCores cores_;
  offpath_session_t* first_ = nullptr;  // it has the others
  Sessions sessions_;
  std::string no_service_;  // why there can be none; empty: not known yet
};

}  // namespace offpath::attach
