// SPDX-License-Identifier: BSD-3-Clause
// Multicasts: the multicast steps of an engine's operations (docs/design/0022-multicast.md). The machines of multicast/ decide; this feeds
// them with what comes and does what they say. multicasts.cpp: how a step begins, runs and ends, and the words of its nodes;
// agreement.cpp: what they agree on before it runs; chunks.cpp: datagrams; fetches.cpp: chunks that are fetched;
// packs.cpp: chunks that are coded together. Internal to engine/.
#pragma once

#include "engine/coding/compression.hpp"
#include "engine/multicasts/pieces.hpp"
#include "engine/rooms/room.hpp"
#include "fabric/group.hpp"
#include "multicast/arming.hpp"
#include "multicast/packs.hpp"
#include "multicast/rate.hpp"
#include "multicast/task.hpp"

#include <algorithm>

namespace offpath::engine {

struct MulticastRun;
class Exports;
class Imports;
class Peers;

inline constexpr uint32_t kMaxFetches = 32;  // of one task, under way
inline constexpr uint64_t kProbeLookNs = 1'000'000;

wire::Message word_of(wire::Word word);

// The multicast group of a team, as one of its members knows it.
struct Circle {
  enum class Known : uint8_t { nothing, works, does_not };

  std::shared_ptr<fabric::Group> group;  // null: none, or given up
  bool tried = false;                    // to join it
  std::set<uint32_t> heard;              // nodes, by their probes
  std::map<uint64_t, MulticastRun*> runs;
  std::map<uint64_t, std::vector<wire::Message>> early;  // armed words by operation, which is not that far here
  uint32_t early_count = 0;
  std::shared_ptr<std::vector<uint8_t>> staged;  // room to read into
  uint64_t probes = 0;                           // sent so far: each has a number of its own
  uint32_t lost = 0, of = 0;                     // chunks, since this node was armed last
  // Of the tree's root only.
  Known known = Known::nothing;
  multicast::Rate rate;
};

// One task under way at this node.
struct MulticastRun {
  // Chunks of one sender that came one after the other, before they are written.
  struct Gathered {
    multicast::Chunks chunks;
    std::vector<uint8_t> bytes;
  };
  struct Early {
    fabric::Label label;
    std::vector<uint8_t> bytes;
  };
  // What leaves of the own part is decided pack by pack.
  struct Coding {
    Compression::Plan plan;
    uint32_t readable = 0;  // by all
    Tries tries;            // packs
    uint64_t since_ns = 0;
    multicast::Chunks decided;  // the pack that leaves,
    CodedChunk* job = nullptr;  // and its coded form; null: as it is
    multicast::Coded coded;
    uint32_t left = 0;  // of its datagrams, so many
  };

  MulticastRun(Operation& its, uint32_t its_step, const graph::Multicast& its_plan)
      : operation(&its),
        step(its_step),
        plan(its_plan),
        arming(its_plan.own, static_cast<uint32_t>(its_plan.members.size()), OFFPATH_ERR_TRUNCATED) {}

  // Where it stands among the nodes; nothing: it takes no part.
  std::optional<uint32_t> node_of(uint32_t member) const {
    const auto found = std::lower_bound(plan.members.begin(), plan.members.end(), member);
    if (found == plan.members.end() || *found != member) return std::nullopt;
    return static_cast<uint32_t>(found - plan.members.begin());
  }

  Operation* operation;
  const uint32_t step;
  const graph::Multicast& plan;
  std::shared_ptr<Circle> circle;
  std::shared_ptr<Pieces> pieces = std::make_shared<Pieces>();
  std::vector<uint64_t> begin;  // of parts in the pieces, by node
  multicast::Arming arming;
  std::optional<multicast::Task> task;  // from the moment when all are armed
  bool by_multicast = false;            // as all nodes were told; whether this one still has a group or not
  size_t chunk_bytes = 0;
  base::Status status;              // the first failure: what it has is garbage from then on
  std::vector<wire::Message> held;  // words that overtook the one that begins it
  std::deque<Early> early;          // datagrams that did
  uint64_t rate = 0;                // bytes per second that come; 0: unknown
  uint64_t quiet_ns = 0;            // so long a silence means that nothing more comes
  uint64_t since_ns = 0;            // when something of it was heard last
  uint64_t probing_since_ns = 0;    // 0: not asked to
  uint32_t probes = 0;              // sent
  bool listens = false;             // for the others' probes
  bool probed = false;
  bool sending = false;
  multicast::Chunks to_send;
  uint32_t senders = 1;                   // at the same time
  std::optional<multicast::Packs> packs;  // nothing: everything goes as it is
  Coding coding;
  std::shared_ptr<std::vector<uint8_t>> staged;  // read from the program's memory: those chunks
  multicast::Chunks staged_chunks;
  uint32_t reads = 0;                                                  // under way, with what is coded
  uint32_t writes = 0;                                                 // with what is decoded
  std::map<uint32_t, Gathered> gathered;                               // by owner
  std::map<uint32_t, std::pair<uint32_t, multicast::Chunks>> fetches;  // by step: part and chunks
  std::vector<uint32_t> free_steps;
  uint32_t fetch_count = 0;
  uint32_t questions_asked = 0, questions_heard = 0;
  uint64_t received = 0;
  uint64_t heard = 0, meant = 0;  // bytes of datagrams, and what they mean
};

class Multicasts final : public Room, public fabric::Hearer {
 public:
  Multicasts(Core& core, Runner& runner, const Config& config, fabric::Fabric& fabric, Compression& compression,
             Peers& peers, Imports& imports, Exports& exports)
      : Room(core, runner, config),
        fabric_(fabric),
        compression_(compression),
        peers_(peers),
        imports_(imports),
        exports_(exports) {}

  void begin_step(Operation& operation, uint32_t step);
  void end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void leave(Team& team) override;
  // Nodes are armed for an operation that this member has not begun.
  bool is_awaited(const Team& team) const override;
  void forget(Operation& operation) override;
  // Members that have not said that they are armed, and may never do so.
  void add_silent(const Operation& operation, std::set<uint32_t>& members) const override;
  void on_ended(Operation& operation, uint32_t member) override;
  void add_waits(const Operation& operation, const Note& note) const override;
  bool progress() override;
  uint64_t wait_ns() override;
  uint64_t rest_ns() const override;

  void on_chunk(const fabric::Label& label, fabric::Bytes chunk) override;

 private:
  using Run = MulticastRun;

  void handle_task(const wire::Message& message);
  void handle_fetch(const wire::Message& message);

  // agreement.cpp
  void join(Run& run, size_t chunk_bytes);
  std::vector<wire::Message> take_early(const Operation& operation);
  // What this node says of itself; each loss once.
  multicast::Word said(Run& run, uint32_t chunk_bytes);
  // To the parent: what this node and those below it have said.
  void pass_on(Run& run, const multicast::Word& word);
  // What a node has said to its parent, this one. False: that cannot be.
  static bool arm(Run& run, uint32_t node, const wire::Message& armed);
  void decide(Run& run, const multicast::Word& word);
  // What the root has decided; told to the children.
  void obey(Run& run, const wire::Message& message);
  // Tells a node that is armed that this member will never be.
  void decline(Team& team, const wire::Message& armed);

  // multicasts.cpp
  // What it sends through. Null: it sends nothing, and all others fetch its part.
  static fabric::Group* group_of(const Run& run);
  void say(Run& run, uint32_t node, const wire::Message& message);
  // Does what the machines say; returns whether that was anything. The run may be gone afterwards.
  bool pump(Run& run);
  void start(Run& run, const wire::Message& message);
  void take_word(Run& run, uint32_t node, const wire::Message& message);
  void end(Run& run);
  Run* find(const Operation& operation) const;
  uint64_t now_ns() const { return compression_.now_ns(); }

  // chunks.cpp
  bool probe(Run& run, uint64_t now);
  bool send(Run& run);
  // Where these own chunks lie; null: they are being read, or cannot be.
  const uint8_t* own_bytes(Run& run, const multicast::Chunks& chunks);
  void stage(Run& run, uint32_t least);
  void hear(Run& run, const fabric::Label& label, fabric::Bytes chunk);
  void place(Run& run, uint32_t owner, const multicast::Chunks& chunks, fabric::Bytes bytes);
  void write(Run& run, uint32_t owner, Run::Gathered& gathered);
  void note_received(Run& run, uint64_t bytes);
  bool write_all(Run& run);
  void fetch(Run& run, const multicast::Act& act);
  uint64_t address_of(const Run& run, uint32_t part, uint32_t chunk) const {
    return run.begin[part] + run.task->arrivals().shape().offset(part, chunk);
  }

  // packs.cpp
  void plan_coding(Run& run, const wire::Message& go);
  void end_coding(Run& run);
  // Decides about the pack that is to leave next. False: it is being read or coded, or failed.
  bool prepare_pack(Run& run);
  void take_coded(Run& run, CodedChunk* job, const base::Status& status);
  // False: there is no room for all of it.
  bool send_pack(Run& run, fabric::Group& group);
  void hear_coded(Run& run, const fabric::Label& label, fabric::Bytes datagram);
  void place_pack(Run& run, const multicast::Chunks& pack, codecs::Bytes bytes);
  codecs::Path path_of(const Run& run);

  fabric::Fabric& fabric_;
  Compression& compression_;
  Peers& peers_;
  Imports& imports_;
  Exports& exports_;
  std::map<uint64_t, std::unique_ptr<Run>> runs_;  // by the operation's id
  std::vector<std::weak_ptr<Circle>> circles_;     // with a group
  Circle* hearing_ = nullptr;
  uint64_t round_ns_ = 0;
};

}  // namespace offpath::engine
