// SPDX-License-Identifier: BSD-3-Clause
// Imports: the blocks that members of this worker want of others: asked for, arriving, there. One state for each (Pull), in one
// table. asking.cpp: how much is asked for; transfers.cpp: chunks that come over the fabric; coded.cpp: compressed ones; pushes.cpp: short
// blocks that nobody has asked for. Owned by the engine; on the worker's thread; blocks nobody. A block that fails is its step's failure. Internal to engine/.
#pragma once

#include "engine/rooms/room.hpp"
#include "engine/rooms/turns.hpp"

namespace offpath::engine {

// One block awaited, from a remote sender or from a neighbour.
struct Pull {
  Operation* operation = nullptr;
  uint32_t step = 0;
  Location target = {};
  uint64_t limit = 0;     // bytes we take
  uint64_t received = 0;  // placed, or being fetched
  uint64_t placed = 0;
  uint64_t total = UINT64_MAX;  // over the fabric; known with the first chunk
  bool pushed = false;          // its sender waits for no done
  uint64_t decode_ns = 0;       // spent on decoding it
};

struct WaitingAnnouncement {
  wire::Message message;
  size_t bytes;
  fabric::Announced handle;
};

class ChunkPool;
class Compression;
class Local;
class Messages;
class Peers;
class Sender;
struct Chunk;
struct LocalWork;
enum class Cause : uint8_t;

class Imports final : public Room {
 public:
  Imports(Core& core, Runner& runner, const Config& config, fabric::Fabric& fabric, Sender& sender, ChunkPool& chunks,
          Compression& compression, Messages& messages, Peers& peers, Local& local)
      : Room(core, runner, config),
        fabric_(fabric),
        sender_(sender),
        chunks_(chunks),
        compression_(compression),
        messages_(messages),
        peers_(peers),
        local_(local),
        turns_(config.chunk_bytes) {}

  void on_message(const wire::Message& message, fabric::Bytes payload) override;
  void on_absent(Team& team, const wire::Message& message) override;
  void leave(Team& team) override { drop_arrived(team, 0, UINT64_MAX); }
  void forget(Operation& operation) override;
  void add_waits(const Operation& operation, const Note& note) const override;
  // Fetches what the fabric has announced.
  bool progress() override;

  // A pull whose turn has come.
  void begin_step(Operation& operation, uint32_t step);
  // Its id, under which it is to be asked for.
  uint64_t add(Pull&& pull);
  // From a member that this service serves.
  void take_offer(uint64_t pull_id, Location source, uint64_t bytes);
  bool is_wanted(uint64_t pull_id) const { return pulls_.contains(pull_id); }
  // A neighbour's block was copied, or could not be.
  void end_copy(Operation& operation, const LocalWork& work);
  // Over the fabric, of those that have begun to come: what comes without being asked for again.
  uint64_t bytes_left() const;
  // See Turns.
  uint64_t window() const { return turns_.window(); }

  // ---- the fabric's
  void announce(const wire::Message& message, size_t bytes, fabric::Announced handle) {
    announcements_.push_back({message, bytes, handle});
  }
  void on_fetched(uint64_t context, bool success);

  // ---- pushes.cpp
  // What no step will take: of operations from..end-1, which are over or were left out.
  void drop_arrived(Team& team, uint64_t from, uint64_t end);

 private:
  // Says `done`, at leisure.
  void acknowledge(Team& team, const BlockKey& block);
  // Straight into where it belongs, if this process can use that in place. False: it cannot.
  bool fetch_in_place(const WaitingAnnouncement& next);
  Pull* check_data(const wire::Message& message, size_t payload_bytes);
  // `holder`: whose memory the data is, given back when it is placed; null: the data is the caller's again on return.
  void place(uint64_t pull_id, uint64_t offset, fabric::Bytes data, Chunk* holder = nullptr);
  void note_placed(uint64_t pull_id, uint64_t bytes, const base::Status& status);
  void decode(const wire::Message& message, fabric::Bytes payload, Chunk* holder);
  void finish_pull(uint64_t pull_id, const base::Status& status, Cause cause);
  // Asks for a block, so much of it now.
  wire::Message pull_of(uint64_t pull_id, uint64_t upto) const;
  // Says who may send more.
  void give_turns();
  // So much of a block is here. Now and then: whether what came lately had gaps.
  void note_turn(uint64_t pull_id, uint64_t bytes);
  void handle_fail(const wire::Message& message);
  void handle_push(const wire::Message& message, fabric::Bytes payload);
  // False: there is none.
  bool take_arrived(const Operation& operation, uint64_t pull_id);
  void place_pushed(uint64_t pull_id, fabric::Bytes data);

  fabric::Fabric& fabric_;
  Sender& sender_;
  ChunkPool& chunks_;
  Compression& compression_;
  Messages& messages_;
  Peers& peers_;
  Local& local_;
  std::unordered_map<uint64_t, Pull> pulls_;
  Turns turns_;
  std::map<fabric::Peer, uint64_t> disordered_;  // segments, by the last look
  std::set<fabric::Peer> senders_;               // since then; and bytes of theirs
  uint64_t unlooked_bytes_ = 0;
  std::deque<WaitingAnnouncement> announcements_;
};

}  // namespace offpath::engine
