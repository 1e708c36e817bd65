// SPDX-License-Identifier: BSD-3-Clause
// A block under way to a receiver on another node, chunk by chunk, until its last chunk is handed to the fabric. The
// receiver says when it has all. A chunk that is to be compressed is read into memory of ours first: its owner may
// write to it meanwhile.
#include "engine/carriers/carrier.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;
using Advice = codecs::Chooser::Advice;

namespace {

constexpr uint64_t kShortestChunkBytes = 16 << 10;
constexpr uint64_t kWholeBytes = 64;  // chunks are multiples of it, so that no number lies in two

class Stream : public Carrier {
 public:
  Stream(Blocks& blocks, Sender& sender) : blocks_(blocks), sender_(sender) {}

  bool take(const Offer& offer) override {
    if (!offer.asked) return false;
    if (offer.bytes == 0) return blocks_.end_empty(offer.block), true;
    Carried& carried = blocks_.carry(offer.block, *this);
    const fabric::Peer peer = blocks_.peer_of(offer.block);
    if (peer == UINT32_MAX) return true;  // its loss ends the operation
    const uint64_t id = carried.transfer = next_id_++;
    Flow flow{offer.block, peer, offer.pull_id,  offer.source,     offer.bytes, offer.granted, 0,
              0,           0,    offer.readable, offer.interpreted};
    flow.coding = blocks_.plan_coding(offer);
    blocks_.coding.begin(id, peer, flow.coding);
    flows_.emplace(id, std::move(flow));
    return true;
  }

  bool move() override {
    bool busy = false;
    // Starts after the one served last, so that a short pool is shared fairly.
    auto it = flows_.upper_bound(last_served_);
    for (size_t left = flows_.size(); left > 0 && !flows_.empty(); --left) {
      if (it == flows_.end()) it = flows_.begin();
      const uint64_t id = it->first;
      const Flow& flow = it->second;
      if (flow.offset < flow.allowed() && flow.in_flight < blocks_.limits.chunks_in_flight) {
        if (!send_chunk(id)) break;
        busy = true;
        last_served_ = id;
      }
      it = flows_.upper_bound(id);  // sending may have ended some
    }
    return busy;
  }

  void allow(const Carried& carried, uint64_t bytes) override {
    if (const auto it = flows_.find(carried.transfer); it != flows_.end()) it->second.granted = bytes;
  }

  void forget(Carried& carried) override {
    flows_.erase(carried.transfer);
    blocks_.coding.end(carried.transfer, carried.decode_ns);
  }

  void on_sent(uint64_t id) override {
    if (const auto it = flows_.find(id); it != flows_.end()) --it->second.in_flight;
  }

  uint64_t bytes_left() const override {
    uint64_t bytes = 0;
    for (const auto& [id, flow] : flows_) bytes += flow.allowed() - flow.offset;
    return bytes;
  }

 private:
  struct Flow {
    Block block;
    fabric::Peer peer;
    uint64_t pull_id;
    Location source;
    uint64_t bytes;
    uint64_t granted;    // of these, by its receiver
    uint64_t offset;     // of what is to be read next
    uint32_t in_flight;  // chunks: being read or sent
    uint32_t reading;
    uint32_t readable;  // codecs that the receiver knows
    bool interpreted;
    Compression::Plan coding = {};
    codecs::Chooser::Decision decision = {};  // of the chunk that is read, where that is automatic
    Tries tries = {};

    uint64_t allowed() const { return std::min(bytes, granted); }
  };

  // Whether the next chunk goes as it is; else it is read into memory of ours, to be coded or looked at.
  bool is_plain(Flow& flow, uint64_t bytes) {
    if (flow.coding.samples) return false;
    if (flow.coding.automatic) {
      flow.decision = blocks_.coding.decide(flow.peer, flow.coding, bytes, flow.bytes - flow.offset, flow.readable);
      return flow.decision.advice == Advice::plain;
    }
    if (!flow.coding.method) return true;
    return flow.tries.pass();
  }

  // Memory behind a link holds a chunk up before it leaves, and so does the other side's behind it: chunks that grow at a
  // block's beginning and shrink towards its end have wire and links begin sooner and end together. Coding holds it up on
  // this side only: such chunks grow.
  uint64_t next_bytes(const Flow& flow) const {
    const uint64_t left = flow.bytes - flow.offset;
    const uint64_t longest = std::min({blocks_.limits.chunk_bytes, left, flow.granted - flow.offset});
    const bool prompt = flow.source.memory->prompt();
    if (prompt && !flow.coding.may_code()) return longest;
    const uint64_t whole = (prompt ? flow.offset : std::min(flow.offset, left / 2)) / kWholeBytes * kWholeBytes;
    return std::min(longest, std::max(kShortestChunkBytes, whole));
  }

  // False: no chunk is free.
  bool send_chunk(uint64_t id) {
    Flow& flow = flows_.at(id);
    Chunk* chunk = sender_.take_chunk();
    if (chunk == nullptr) return false;
    const uint64_t from = flow.source.address + flow.offset;
    // What is in place ends a chunk, and so does what is not: the few bytes around it do not make it copied.
    const uint64_t bytes = flow.source.memory->alike(from, next_bytes(flow));
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
    if (!is_plain(flow, bytes)) return read_to_code(flow, id, chunk, from, data), true;
    if (const uint8_t* payload = flow.source.memory->view(from, bytes); payload != nullptr) {
      chunk->source = flow.source.memory;
      emit(flow, id, chunk, fabric::Bytes(payload, bytes), data);
      return true;
    }
    const memory::Ticket ticket = blocks_.next_ticket();
    blocks_.when_done(flow.block, flow.source.memory->read(chunk->memory.get(), from, bytes, ticket), ticket,
                      [this, id, chunk, data](Operation* operation, const Status& status) {
                        Flow* wanted = wanted_by(operation, id);
                        if (wanted != nullptr && status.ok()) {
                          return emit(*wanted, id, chunk, fabric::Bytes(chunk->memory.get(), chunk->bytes), data);
                        }
                        sender_.give_back(chunk);
                        if (wanted != nullptr) blocks_.refuse(wanted->block, status);
                      });
    return true;
  }

  // It may have been given up.
  Flow* wanted_by(Operation* operation, uint64_t id) {
    const auto found = flows_.find(id);
    return operation != nullptr && found != flows_.end() ? &found->second : nullptr;
  }

  void read_to_code(Flow& flow, uint64_t id, Chunk* chunk, uint64_t from, const Message& data) {
    CodedChunk* job = blocks_.coding.take();
    job->method = flow.decision.method;
    const codecs::Room plain = job->plain_room(chunk->bytes);
    job->in = plain;
    if (const uint8_t* there = flow.source.memory->view(from, plain.size()); there != nullptr) {
      std::copy_n(there, plain.size(), plain.data());
      return code(flow, id, chunk, job, data);
    }
    const memory::Ticket ticket = blocks_.next_ticket();
    blocks_.when_done(flow.block, flow.source.memory->read(plain.data(), from, plain.size(), ticket), ticket,
                      [this, id, chunk, job, data](Operation* operation, const Status& status) {
                        Flow* wanted = wanted_by(operation, id);
                        if (wanted != nullptr && status.ok()) return code(*wanted, id, chunk, job, data);
                        blocks_.coding.give_back(job);
                        sender_.give_back(chunk);
                        if (wanted != nullptr) blocks_.refuse(wanted->block, status);
                      });
  }

  void code(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data) {
    Compression::Plan& coding = flow.coding;
    if (coding.samples) {
      blocks_.note_sampled(flow.block, blocks_.coding.chooser.sample(job->in));
      coding = {};
    }
    codecs::Method method = coding.automatic ? job->method : coding.method;
    if (coding.automatic && !method) {  // none yet: it is to be looked at
      const auto path = [&] { return blocks_.coding.path_to(flow.peer); };
      method = blocks_.coding.look(coding, job->in, flow.bytes - flow.offset, flow.readable, path).method;
    }
    const bool whole = data.offset % std::max<size_t>(bytes_of(method.elements), 1) == 0;
    if (!method || !whole) return emit_plain(flow, id, chunk, job, data);
    const size_t worthwhile = job->in.size() - job->in.size() / 16;
    job->method = method;
    job->out = codecs::Room(chunk->memory.get(), worthwhile);
    job->bytes = 0;
    job->path = blocks_.coding.path_to(flow.peer);
    job->since_ns = blocks_.coding.now_ns();
    const memory::Ticket ticket = blocks_.next_ticket();
    blocks_.when_done(flow.block, blocks_.coding.coder.encode(*job, ticket), ticket,
                      [this, id, chunk, job, data](Operation* operation, const Status& status) {
                        Flow* wanted = wanted_by(operation, id);
                        if (wanted != nullptr) return emit_coded(*wanted, id, chunk, job, data, status);
                        blocks_.coding.give_back(job);
                        sender_.give_back(chunk);
                      });
  }

  // Unless it did not become shorter.
  void emit_coded(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data, const Status& status) {
    const size_t bytes = status.ok() ? job->bytes : 0;
    const uint64_t took_ns = blocks_.coding.now_ns() - job->since_ns;
    if (flow.coding.automatic) {
      blocks_.coding.chooser.note_chunk(flow.coding.kind, job->method, job->in.size(), bytes, took_ns);
    } else {
      flow.tries.note(bytes > 0);
    }
    if (bytes == 0) return emit_plain(flow, id, chunk, job, data);
    Message coded = data;
    coded.kind = Kind::coded;
    coded.length = static_cast<uint32_t>(job->in.size());
    coded.check = job->check;
    coded.codec = static_cast<uint8_t>(job->method.codec);
    coded.width = job->method.width;
    blocks_.note_coded(flow.block, {chunk->bytes, bytes, codecs::is_lossy(job->method.codec), job->largest_error,
                                    blocks_.coding.saved_ns(*job, bytes)});
    blocks_.coding.give_back(job);
    emit(flow, id, chunk, fabric::Bytes(chunk->memory.get(), bytes), coded);
  }

  void emit_plain(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data) {
    std::copy(job->in.begin(), job->in.end(), chunk->memory.get());
    blocks_.coding.give_back(job);
    emit(flow, id, chunk, fabric::Bytes(chunk->memory.get(), chunk->bytes), data);
  }

  // What was read into the chunk, or lies at `payload`, leaves.
  void emit(Flow& flow, uint64_t id, Chunk* chunk, fabric::Bytes payload, const Message& data) {
    const uint64_t bytes = chunk->bytes;
    blocks_.coding.note_left(id, flow.peer, bytes, payload.size(), static_cast<codecs::CodecId>(data.codec));
    const bool is_short = payload.size() <= blocks_.limits.batched_bytes;
    uint8_t* shared = is_short ? sender_.add_entry(flow.peer, data, payload.size()) : nullptr;
    if (shared != nullptr) {
      std::copy(payload.begin(), payload.end(), shared);
      --flow.in_flight;
      sender_.give_back(chunk);
    } else {
      if (chunk->source != nullptr) hold(flow.block, *chunk);
      const bool is_data = !flow.interpreted && data.kind == Kind::data;
      sender_.say_from(flow.peer, data, payload, chunk, is_data ? fabric::Of::user_data : fabric::Of::interpreted);
    }
    blocks_.note_left(flow.block, bytes);
    --flow.reading;
    if (flow.offset == flow.bytes && flow.reading == 0) flows_.erase(id);
  }

  // What is sent from where it lies is read until it is sent: an operation that fails meanwhile does not end before.
  void hold(Block block, Chunk& chunk) {
    chunk.access = blocks_.next_ticket().number;
    blocks_.later(block, chunk.access, [](Operation*, const Status&) {});
  }

  Blocks& blocks_;
  Sender& sender_;
  std::map<uint64_t, Flow> flows_;
  uint64_t next_id_ = 1;
  uint64_t last_served_ = 0;
};

}  // namespace

std::unique_ptr<Carrier> make_stream(Blocks& blocks, Sender& sender) {
  return std::make_unique<Stream>(blocks, sender);
}

}  // namespace offpath::engine
