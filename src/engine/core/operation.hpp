// SPDX-License-Identifier: BSD-3-Clause
// Operation: a graph that was posted, and how far it is. One state for each step and each block. Internal to engine/.
#pragma once

#include "engine/blocks/block.hpp"
#include "engine/core/team.hpp"
#include "graph/graph.hpp"

#include <map>
#include <memory>
#include <set>
#include <vector>

namespace offpath::engine {

using graph::Export;
using graph::Graph;
using graph::kClient;
using graph::kEndingTag;
using graph::kNoStep;
using graph::kScratch;
using graph::Layout;
using graph::Place;
using graph::Step;
using graph::StepKind;

struct StepProgress {
  bool done = false;
  bool failed = false;               // or after one that did: what it would produce is garbage
  uint32_t first_waiting = kNoStep;  // of the exports that were asked for and wait for this step
  uint64_t moved = 0;
};

enum class ExportState : uint8_t {
  open,       // nobody has asked
  requested,  // and waits for its step
  reading,    // to be pushed; asked for, too, if there is a pull's id
  sending,
  resolved
};

struct ExportProgress {
  ExportState state = ExportState::open;
  bool waits = false;    // for its step, in the list of those
  bool pushable = true;  // until that has failed
  uint64_t pull_id = 0;
  uint64_t limit = 0;               // bytes the peer takes
  uint64_t granted = UINT64_MAX;    // of these, so many now
  uint32_t readable = 0;            // codecs that it can read
  uint32_t next_waiting = kNoStep;  // another export that waits for the same step
  Carried carried;
};

enum class Part : uint8_t { collective, requester, responder };

struct Operation {
  uint64_t id = 0;
  std::shared_ptr<Team> team;
  OperationKey key;
  Part part = Part::collective;
  uint64_t context = 0;  // of the responder's: the RequestId
  Graph graph;
  std::vector<StepProgress> steps;
  std::vector<ExportProgress> exports;
  std::vector<std::shared_ptr<const memory::LayoutIndex>> layouts;
  std::shared_ptr<memory::Port> scratch;                    // null: none needed, or none to be had
  std::vector<bool> begun;                                  // by member: has sent us anything for it
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> asked;  // by member and tag: the pull of what may be pushed
  uint32_t accesses = 0;                                    // under way at ports: while there are any it does not end
  uint32_t steps_left = 0;
  uint32_t exports_left = 0;
  uint32_t endings_left = 0;  // of the steps: questions of endings.cpp
  uint32_t own_steps = 0;     // the graph's as it was posted: what comes behind is the engine's
  bool awaits_reply = false;
  bool arrived = false;          // its own steps are done
  bool awaits_arrivals = false;  // of others, as its graph ends so
  std::set<uint32_t> takers;     // graph::Ends::by_pairs: who has not arrived yet
  bool moved = false;            // at least a byte
  bool over = false;             // only waits for settle()
  base::Status status;

  void note_begun(uint32_t member) {
    if (begun.empty()) begun.resize(team->spec.members.size());
    begun[member] = true;
  }
  bool has_begun(uint32_t member) const { return member < begun.size() && begun[member]; }
  // The first failure is the one that is reported.
  void note_failure(const base::Status& failure) {
    if (status.ok()) status = failure;
  }
  base::Status resolve(const Place& place, Location& out) const;
  // The channel of what it takes from others.
  wire::Channel incoming() const {
    if (part == Part::collective) return wire::Channel::collectives;
    return part == Part::requester ? wire::Channel::answers : wire::Channel::calls;
  }
  // Whether pulls that are to bring all they ask for did; when none has failed. What came may end early, but with a gap
  // in it, or without a beginning, the members do not even agree on who gets what from whom.
  base::Status shortfall() const;
  // What there is of an export: no more than its pull brought, where that may have brought less.
  uint64_t bytes_of(uint32_t export_index) const {
    const Export& block = graph.exports[export_index];
    const bool is_whole = graph.shortfall == OFFPATH_OK || block.after == kNoStep;
    return is_whole ? block.bytes : std::min(block.bytes, steps[block.after].moved);
  }
};

}  // namespace offpath::engine
