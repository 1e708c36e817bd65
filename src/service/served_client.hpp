// SPDX-License-Identifier: BSD-3-Clause
// ServedClient: one attached client as its worker sees it: takes what it submits, gives it to the engine as graphs,
// and writes results into its session segment.
#pragma once

#include "base/fd.hpp"
#include "engine/engine.hpp"
#include "ops/collectives/collective.hpp"
#include "session/member_address.hpp"
#include "session/segment_view.hpp"

#include <unordered_map>

namespace offpath::service {

class ServedClient {
 public:
  ServedClient(engine::ClientId id, base::Fd socket, session::SegmentView view, const session::ServiceId& service);

  engine::ClientId id() const { return id_; }
  int socket() const { return socket_.get(); }
  session::SegmentHeader& header() { return view_.header(); }
  // Something submitted that was not taken yet?
  bool has_submission() const;
  // It wrote nonsense where it may not: whoever serves it should let it go.
  bool broken() const { return view_.corrupt(); }
  // Takes one submission, if any, and carries it out on the engine.
  bool take_submission(engine::Engine& engine);

  // From the engine's observer; `slot` is the context given to post().
  void on_step(uint64_t slot, uint32_t peer, uint64_t bytes, bool local);
  void on_served(uint64_t slot, uint32_t peer, uint64_t bytes, bool local);
  void on_finished(uint64_t slot, const base::Status& status);
  void on_member_lost(uint64_t team_record, uint32_t rank);

 private:
  struct ServedTeam {
    engine::TeamHandle handle = 0;
    ops::Topology topology;
    uint64_t next_sequence = 0;
  };

  base::Status create_team(const session::Slot& slot);
  base::Status begin_collective(uint32_t index, session::Slot& slot);
  base::Result<engine::Graph> expand(const session::Slot& slot, const ops::Topology& topology) const;
  // Tells the client how much is left to be done with whom.
  void show_work(session::Slot& slot, const engine::Graph& graph, const ops::Topology& topology);
  void count_down(const session::Slot& slot, uint32_t peer);

  engine::Engine* engine_ = nullptr;
  engine::ClientId id_;
  base::Fd socket_;
  session::SegmentView view_;
  session::ServiceId service_;
  std::unordered_map<uint64_t, ServedTeam> teams_;  // by arena offset of the record
};

}  // namespace offpath::service
