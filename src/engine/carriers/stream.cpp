// SPDX-License-Identifier: BSD-3-Clause
// A block under way to a receiver on another node, chunk by chunk, until its last chunk is handed to the fabric. The
// receiver says when it has all.
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

class Engine::State::Stream : public Carrier {
 public:
  explicit Stream(State& state) : s_(state) {}

  bool take(Operation& operation, uint32_t index, const Location& source, bool asked) override {
    if (!asked) return false;
    const Export& block = operation.graph.exports[index];
    ExportProgress& progress = operation.exports[index];
    const uint64_t bytes = operation.bytes_of(index);
    if (bytes == 0) {
      s_.answer_empty(*operation.team, block.peer, progress.pull_id);
      s_.resolve_export(operation, index, 0);
      return true;
    }
    progress.state = ExportState::sending;
    const fabric::Peer peer = s_.peer_of(*operation.team, block.peer);
    if (peer == UINT32_MAX) return true;  // its loss ends the operation
    progress.transfer = s_.next_id++;
    flows_.emplace(progress.transfer, Flow{&operation, index, peer, progress.pull_id, source, bytes, 0, 0, 0});
    return true;
  }

  bool move() override {
    bool busy = false;
    // Starts after the one served last, so that a short pool is shared fairly.
    auto it = flows_.upper_bound(last_served_);
    for (size_t left = flows_.size(); left > 0 && !flows_.empty(); --left) {
      if (it == flows_.end()) it = flows_.begin();
      const uint64_t id = it->first;
      if (it->second.offset < it->second.bytes && it->second.in_flight < s_.config.chunks_in_flight) {
        if (!send_chunk(id)) break;
        busy = true;
        last_served_ = id;
      }
      it = flows_.upper_bound(id);  // sending may have ended some
    }
    return busy;
  }

  void forget(Operation& operation, uint32_t index) override { flows_.erase(operation.exports[index].transfer); }

  void on_sent(uint64_t id) override {
    if (const auto it = flows_.find(id); it != flows_.end()) --it->second.in_flight;
  }

  uint64_t bytes_left() const override {
    uint64_t bytes = 0;
    for (const auto& [id, flow] : flows_) bytes += flow.bytes - flow.offset;
    return bytes;
  }

 private:
  struct Flow {
    Operation* operation;
    uint32_t export_index;
    fabric::Peer peer;
    uint64_t pull_id;
    Location source;
    uint64_t bytes;
    uint64_t offset;     // of what is to be read next
    uint32_t in_flight;  // chunks: being read or sent
    uint32_t reading;
  };

  // False: no chunk is free.
  bool send_chunk(uint64_t id) {
    Flow& flow = flows_.at(id);
    Chunk* chunk = s_.chunks.take_to_send();
    if (chunk == nullptr) return false;
    const uint64_t from = flow.source.address + flow.offset;
    // What is in place ends a chunk, and so does what is not: the few bytes around it do not make it copied.
    const uint64_t bytes =
        flow.source.memory->alike(from, std::min<uint64_t>(s_.config.chunk_bytes, flow.bytes - flow.offset));
    Message data;
    data.kind = Kind::data;
    data.pull_id = flow.pull_id;
    data.bytes = flow.bytes;
    data.offset = flow.offset;
    chunk->carrier = this;
    chunk->transfer = id;
    chunk->bytes = bytes;
    flow.offset += bytes;
    ++flow.in_flight;
    ++flow.reading;
    if (const uint8_t* payload = flow.source.memory->view(from, bytes); payload != nullptr) {
      chunk->source = flow.source.memory;
      emit(flow, id, chunk, payload, data);
      return true;
    }
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(*flow.operation, flow.source.memory->read(chunk->memory.get(), from, bytes, ticket), ticket,
                 [this, id, chunk, data](Operation* operation, const Status& status) {
                   const auto found = flows_.find(id);  // it may have been given up
                   const bool wanted = operation != nullptr && found != flows_.end();
                   if (wanted && status.ok()) return emit(found->second, id, chunk, chunk->memory.get(), data);
                   s_.chunks.give_back(chunk);
                   if (wanted) s_.refuse_block(*operation, found->second.export_index, status);
                 });
    return true;
  }

  // What was read into the chunk, or lies at `payload`, leaves.
  void emit(Flow& flow, uint64_t id, Chunk* chunk, const uint8_t* payload, const Message& data) {
    const uint64_t bytes = chunk->bytes;
    uint8_t* shared = bytes <= s_.config.batched_bytes ? s_.sender.add_entry(flow.peer, data, bytes) : nullptr;
    if (shared != nullptr) {
      std::copy_n(payload, bytes, shared);
      --flow.in_flight;
      s_.chunks.give_back(chunk);
    } else {
      if (chunk->source != nullptr) hold(*flow.operation, *chunk);
      s_.sender.say_from(flow.peer, data, fabric::Bytes(payload, bytes), chunk);
    }
    s_.note_moved(*flow.operation, bytes);
    s_.traffic.sent_bytes += bytes;
    --flow.reading;
    if (flow.offset == flow.bytes && flow.reading == 0) flows_.erase(id);
  }

  // What is sent from where it lies is read until it is sent: an operation that fails meanwhile does not end before.
  void hold(Operation& operation, Chunk& chunk) {
    const memory::Ticket sent = s_.next_ticket();
    chunk.access = sent.number;
    s_.when_done(operation, memory::Outcome::later(), sent, [](Operation*, const Status&) {});
  }

  State& s_;
  std::map<uint64_t, Flow> flows_;
  uint64_t last_served_ = 0;
};

std::unique_ptr<Carrier> Engine::State::make_stream() { return std::make_unique<Stream>(*this); }

}  // namespace offpath::engine
