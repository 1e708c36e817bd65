// SPDX-License-Identifier: BSD-3-Clause
// A short block of a collective, whole, to another node, asked for or not (docs/design/0013-push.md). It is copied, so its
// memory is free at once, and to the operation it is as if it were taken. Failures are for those who ask: they learn of
// them by their pull's id.
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;

class Engine::State::Push : public Carrier {
 public:
  explicit Push(State& state) : s_(state) {}

  bool take(Operation& operation, uint32_t index, const Location& source, bool asked) override {
    ExportProgress& progress = operation.exports[index];
    if (!progress.pushable || !allowed(operation, index, asked)) return false;
    const uint64_t bytes = operation.bytes_of(index);
    if (bytes > s_.chunks.chunk_bytes()) return false;  // it goes through one
    const uint8_t* there = bytes > 0 ? source.memory->view(source.address, bytes) : nullptr;
    if (bytes == 0 || there != nullptr) return emit(operation, index, there, asked);
    Chunk* chunk = s_.chunks.take_to_send();
    if (chunk == nullptr) return false;
    progress.state = ExportState::reading;
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(operation, source.memory->read(chunk->memory.get(), source.address, bytes, ticket), ticket,
                 [this, index, chunk](Operation* op, const Status& status) {
                   if (op != nullptr && op->exports[index].state == ExportState::reading) {
                     read(*op, index, chunk->memory.get(), status);
                   }
                   s_.chunks.give_back(chunk);
                   if (op != nullptr && op->exports[index].state == ExportState::requested) s_.hand_out(*op, index);
                 });
    return true;
  }

 private:
  // Unless it was asked for, there are limits to what may lie there.
  bool allowed(const Operation& operation, uint32_t index, bool asked) const {
    const Export& block = operation.graph.exports[index];
    return s_.may_push(operation, block) && (asked || operation.team->exchange.may_push(block.peer));
  }

  // It may have been asked for meanwhile.
  void read(Operation& operation, uint32_t index, const uint8_t* data, const Status& status) {
    ExportProgress& progress = operation.exports[index];
    const bool asked = progress.pull_id != 0;
    progress.state = asked ? ExportState::requested : ExportState::open;
    const bool fits = !asked || operation.graph.exports[index].bytes <= progress.limit;
    progress.pushable = status.ok() && fits && allowed(operation, index, asked) && emit(operation, index, data, asked);
  }

  bool emit(Operation& operation, uint32_t index, const uint8_t* data, bool asked) {
    const Export& block = operation.graph.exports[index];
    Team& team = *operation.team;
    const uint64_t bytes = operation.bytes_of(index);
    const fabric::Peer peer = s_.peer_of(team, block.peer);
    if (peer == UINT32_MAX) return false;
    const Message message =
        about(Kind::push, team, operation.key.channel, operation.key.number, team.spec.rank, block.peer, block.tag);
    uint8_t* copy = s_.sender.add_entry(peer, message, bytes);
    if (copy == nullptr) return false;
    std::copy_n(data, bytes, copy);
    s_.note_moved(operation, bytes);
    s_.traffic.sent_bytes += bytes;
    if (!asked) team.exchange.note_pushed({message.number, block.peer, block.tag});
    s_.resolve_export(operation, index, bytes);
    return true;
  }

  State& s_;
};

std::unique_ptr<Carrier> Engine::State::make_push() { return std::make_unique<Push>(*this); }

}  // namespace offpath::engine
