// SPDX-License-Identifier: BSD-3-Clause
// A short block of a collective, whole, to another node, asked for or not (docs/design/0013-push.md). It is copied, so its
// memory is free at once, and to the operation it is as if it were taken. Failures are for those who ask: they learn of
// them by their pull's id.
#include "engine/carriers/carrier.hpp"

#include <algorithm>

namespace offpath::engine {
namespace {

class Push : public Carrier {
 public:
  Push(Blocks& blocks, Sender& sender) : blocks_(blocks), sender_(sender) {}

  bool take(const Offer& offer) override {
    const auto [block, source, bytes] = std::tie(offer.block, offer.source, offer.bytes);
    if (!blocks_.may_push(block, offer.asked) || bytes > blocks_.limits.chunk_bytes) return false;
    const uint8_t* there = bytes > 0 ? source.memory->view(source.address, bytes) : nullptr;
    if (bytes == 0 || there != nullptr) return emit(block, there, bytes, offer.asked);
    Chunk* chunk = sender_.take_chunk();
    if (chunk == nullptr) return false;
    blocks_.begin_reading(block);
    const memory::Ticket ticket = blocks_.next_ticket();
    blocks_.when_done(block, source.memory->read(chunk->memory.get(), source.address, bytes, ticket), ticket,
                      [this, its = block, chunk, length = bytes](Operation* operation, const base::Status& status) {
                        const bool left = operation != nullptr && read(its, chunk->memory.get(), length, status);
                        sender_.give_back(chunk);
                        if (operation != nullptr && !left) blocks_.give_otherwise(its);
                      });
    return true;
  }

 private:
  // It may have been asked for meanwhile.
  bool read(Block block, const uint8_t* data, uint64_t bytes, const base::Status& status) {
    const std::optional<bool> asked = blocks_.end_reading(block);
    return asked && status.ok() && blocks_.may_push(block, *asked) && emit(block, data, bytes, *asked);
  }

  bool emit(Block block, const uint8_t* data, uint64_t bytes, bool asked) {
    const fabric::Peer peer = blocks_.peer_of(block);
    if (peer == UINT32_MAX) return false;
    uint8_t* copy = sender_.add_entry(peer, blocks_.push_of(block), bytes);
    if (copy == nullptr) return false;
    std::copy_n(data, bytes, copy);
    blocks_.note_pushed(block, bytes, asked);
    return true;
  }

  Blocks& blocks_;
  Sender& sender_;
};

}  // namespace

std::unique_ptr<Carrier> make_push(Blocks& blocks, Sender& sender) { return std::make_unique<Push>(blocks, sender); }

}  // namespace offpath::engine
