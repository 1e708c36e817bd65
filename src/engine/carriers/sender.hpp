// SPDX-License-Identifier: BSD-3-Clause
// Sender: what a worker says to other services. Several small messages to one worker leave as one, with the next
// flush_all(). Knows peers and messages, not teams and operations. The fabric and the pool outlive it. On the worker's thread;
// what cannot leave yet waits here, nobody for it.
#pragma once

#include "engine/carriers/chunks.hpp"
#include "fabric/fabric.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_set>

namespace offpath::engine {

class Sender {
 public:
  Sender(fabric::Fabric& fabric, ChunkPool& chunks)
      : fabric_(fabric), chunks_(chunks), batch_bytes_(std::min(chunks.chunk_bytes(), fabric::kShortBytes)) {}

  // For a piece of a block; null: none is free. Its carrier gives it back, or say_from() does so when it has left.
  Chunk* take_chunk() { return chunks_.take_to_send(); }
  void give_back(Chunk* chunk) { chunks_.give_back(chunk); }

  // The fabric has lost it: what waits for it is dropped.
  void lose(fabric::Peer peer) { lost_.insert(peer); }
  bool is_lost(fabric::Peer peer) const { return lost_.contains(peer); }

  void say(fabric::Peer peer, const wire::Message& message);
  // Waits, in order, where no chunk is free.
  void say_with(fabric::Peer peer, const wire::Message& message, fabric::Bytes payload);
  // With the next message to that worker, or `limit` of them together, or by say_owed(): nobody waits for it.
  void say_later(fabric::Peer peer, const wire::Message& message, size_t limit);
  bool owes() const { return !owed_.empty(); }
  void say_owed();
  // From where it lies, which stays until the fabric has sent it (Receiver::on_sent with the chunk). What was said to that
  // worker before leaves before.
  void say_from(fabric::Peer peer, const wire::Message& message, fabric::Bytes payload, Chunk* chunk,
                fabric::Of of = fabric::Of::interpreted);
  // Where to write the payload of a message that then leaves with others. Null: it must go by itself.
  uint8_t* add_entry(fabric::Peer peer, const wire::Message& message, size_t payload_bytes);

  // Before anything else takes every chunk there is.
  bool send_waiting();
  bool flush_all() {
    if (unsent_.empty()) return false;
    flush_unsent();
    return true;
  }

 private:
  // Messages that leave for one peer with the next flush.
  struct Outbox {
    Chunk* chunk = nullptr;
    size_t used = 0;
    size_t entries = 0;
  };
  struct Waiting {
    fabric::Peer peer;
    wire::Message message;
    std::vector<uint8_t> payload;
  };

  // False: no chunk is free.
  bool send_payload(fabric::Peer peer, const wire::Message& message, fabric::Bytes payload);
  void say_owed(fabric::Peer peer);
  void flush(fabric::Peer peer);
  void flush_unsent();

  fabric::Fabric& fabric_;
  ChunkPool& chunks_;
  const size_t batch_bytes_;      // longest one
  std::vector<Outbox> outboxes_;  // by peer
  std::vector<fabric::Peer> unsent_;
  std::map<fabric::Peer, std::vector<wire::Message>> owed_;
  std::deque<Waiting> waiting_;
  std::unordered_set<fabric::Peer> lost_;
};

}  // namespace offpath::engine
