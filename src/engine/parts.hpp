// SPDX-License-Identifier: BSD-3-Clause
// Parts: what an engine is made of. The only place that sees all of it; each part sees what it is given here. Internal to engine/.
#pragma once

#include "engine/multicasts/multicasts.hpp"
#include "engine/rooms/arrivals.hpp"
#include "engine/rooms/calls.hpp"
#include "engine/rooms/exports.hpp"
#include "engine/rooms/imports.hpp"
#include "engine/rooms/local.hpp"
#include "engine/rooms/messages.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

struct Parts final : Rooms {
  Parts(const Config& its_config, fabric::Fabric& its_fabric, Neighbours& its_neighbours, Observer& its_observer)
      : config(its_config), fabric(its_fabric), neighbours(its_neighbours), observer(its_observer) {}

  // Rooms
  void begin(Operation& operation) override;
  void begin_step(Operation& operation, uint32_t step) override;
  void end_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes) override;
  void offer(Operation& operation, uint32_t first) override { exports.offer_waiting(operation, first); }
  void arrive(Operation& operation) override { arrivals.arrive(operation); }
  void forget(Operation& operation) override;
  void end(std::unique_ptr<Operation> operation) override;
  void go_on() override { calls.has_answers() ? calls.answer_next() : peers.deliver_near(); }

  const Config config;
  fabric::Fabric& fabric;
  Neighbours& neighbours;
  Observer& observer;
  const std::unique_ptr<Doer> own_doer = config.doer == nullptr ? make_doer(config.scratch_cache_bytes) : nullptr;
  Core core{observer, config.doer == nullptr ? *own_doer : *config.doer};
  Runner runner{core, *this, config.wake};
  Messages messages{core, runner, rooms};
  ChunkPool chunks{config.chunk_bytes, config.pool_chunks};
  Sender sender{fabric, chunks};
  Compression compression{config.now_ns, config.coder, fabric};

  Local local{core, runner, config, chunks, imports};
  Peers peers{core, runner, config, fabric, neighbours, sender, messages, imports, rooms};
  Imports imports{core, runner, config, fabric, sender, chunks, compression, messages, peers, local};
  Calls calls{core, runner, config, peers, exports};
  Multicasts multicasts{core, runner, config, fabric, compression, peers, imports, exports};
  Exports exports{core, runner, config, sender, compression, peers, rooms};
  Arrivals arrivals{core, runner, config, peers};
  const RoomList rooms{
#define OFFPATH_ROOM(type, name) &name,
#include "engine/rooms/rooms.def"
  };
};

}  // namespace offpath::engine
