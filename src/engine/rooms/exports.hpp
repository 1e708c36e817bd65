// SPDX-License-Identifier: BSD-3-Clause
// Exports: the blocks that members of this worker give to others: asked for, offered to the carriers in order, taken. One state
// for each, which lies with its operation (ExportProgress). exports.cpp: pulls and how they are served; endings.cpp: blocks that
// nobody will take. Owned by the engine; on the worker's thread; blocks nobody. Internal to engine/.
#pragma once

#include "engine/carriers/carrier.hpp"
#include "engine/rooms/room.hpp"

namespace offpath::engine {

class Peers;

class Exports final : public Room, private Blocks {
 public:
  Exports(Core& core, Runner& runner, const Config& config, Sender& sender, Compression& compression, Peers& peers,
          const RoomList& rooms);

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void leave(Team& team) override { team.exchange.forget_pulls(); }
  bool is_awaited(const Team& team) const override { return team.exchange.pulls_waiting() > 0; }
  void forget(Operation& operation) override;
  void add_silent(const Operation& operation, std::set<uint32_t>& members) const override;
  void on_ended(Operation& operation, uint32_t member) override { close(operation, member); }
  void add_waits(const Operation& operation, const Note& note) const override;
  bool progress() override;

  // The operation is posted: serves those who have asked before, and pushes what is short.
  void begin(Operation& operation);
  // What the step has made is there: exports that have waited for it, from that one on.
  void offer_waiting(Operation& operation, uint32_t first);
  // A block that was asked for is there.
  void offer(Operation& operation, uint32_t index, const Location& source);
  // Takes those for granted that nobody has asked for: all, or those of one member.
  void close(Operation& operation, std::optional<uint32_t> peer = {});

  // Tells member `rank` that its pull will not be served, and why; that there is nothing for it.
  void refuse_pull(Team& team, uint32_t rank, uint64_t pull_id, offpath_status_t status);
  void answer_empty(Team& team, uint32_t rank, uint64_t pull_id);
  // The same of a member that has departed: what it exported was taken, unless the operation was given up.
  void answer_departed(Team& team, const wire::Message& pull);

  // Asks those who have not asked for their blocks whether they will. Now and then.
  void ask_for_endings();
  void end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);

  void note_coded(const Operation& operation, const Coded& coded);

  // Over the fabric, of those under way.
  uint64_t bytes_left() const;

 private:
  void handle_pull(const wire::Message& message);
  void handle_done(const wire::Message& message);
  // True if it answers a push.
  bool settle_push(Team& team, const wire::Message& message);
  void serve(Operation& operation, const wire::Message& message);
  // Finds a carrier for a block that is there.
  void hand_out(Operation& operation, uint32_t index);
  void hand_out_after_step(Operation& operation, uint32_t index);
  void resolve(Operation& operation, uint32_t index, uint64_t bytes);
  static bool is_there(const Operation& operation, const Export& block) {
    return block.after == kNoStep || operation.steps[block.after].done;
  }
  bool may_push(const Operation& operation, const Export& block) const;
  // False: there is nobody to ask.
  bool ask_for_endings(Operation& operation);
  // `operation`: null if it is not under way.
  void answer_ending(Team& team, const Operation* operation, const wire::Message& message);

  // Blocks
  bool may_push(Block block, bool asked) const override;
  wire::Message push_of(Block block) const override;
  fabric::Peer peer_of(Block block) override;
  Compression::Plan plan_coding(const Offer& offer) const override;
  void offer_near(Block block, Location source, uint64_t bytes) override;
  Carried& carry(Block block, Carrier& by) override;
  void begin_reading(Block block) override;
  std::optional<bool> end_reading(Block block) override;
  void note_left(Block block, uint64_t bytes) override;
  void note_coded(Block block, const Coded& coded) override;
  void note_sampled(Block block, const codecs::Chooser::Sampled& sampled) override;
  void note_pushed(Block block, uint64_t bytes, bool asked) override;
  void end_empty(Block block) override;
  void refuse(Block block, const base::Status& status) override;
  void give_otherwise(Block block) override;
  memory::Ticket next_ticket() override { return runner_.next_ticket(); }
  void later(Block block, uint64_t ticket, Then then) override;

  Peers& peers_;
  const RoomList& rooms_;
  const std::vector<std::unique_ptr<Carrier>> carriers_;
};

}  // namespace offpath::engine
