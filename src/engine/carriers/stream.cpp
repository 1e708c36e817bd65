// SPDX-License-Identifier: BSD-3-Clause
// A block under way to a receiver on another node, chunk by chunk, until its last chunk is handed to the fabric. The
// receiver says when it has all. A chunk that is to be compressed is read into memory of ours first: its owner may
// write to it meanwhile.
#include "engine/state.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;
using Advice = codecs::Chooser::Advice;

static constexpr uint32_t kMostMisses = 5;
static constexpr uint64_t kShortestChunkBytes = 16 << 10;
static constexpr uint64_t kWholeBytes = 64;  // chunks are multiples of it, so that no number lies in two

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
    Flow flow{&operation, index, peer, progress.pull_id, source, bytes, 0, 0, 0, progress.readable};
    const uint64_t team = wire::TeamIdHash()(operation.team->spec.id);
    const codecs::Wish& wish = operation.team->spec.compress ? *operation.team->spec.compress : s_.config.compress;
    flow.coding = s_.compression.plan(wish, operation.graph, block, bytes, team, progress.readable);
    s_.compression.begin(progress.transfer, peer, flow.coding);
    flows_.emplace(progress.transfer, std::move(flow));
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

  void forget(Operation& operation, uint32_t index) override {
    flows_.erase(operation.exports[index].transfer);
    s_.compression.end(operation.exports[index].transfer, operation.exports[index].decode_ns);
  }

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
    uint32_t readable;  // codecs that the receiver knows
    Compression::Plan coding = {};
    codecs::Chooser::Decision decision = {};  // of the chunk that is read, where that is automatic
    uint32_t plain_left = 0;                  // chunks that go as they are, because others could not be compressed
    uint32_t misses = 0;
  };

  // Whether the next chunk goes as it is; else it is read into memory of ours, to be coded or looked at.
  bool is_plain(Flow& flow, uint64_t bytes) {
    if (flow.coding.samples) return false;
    if (flow.coding.automatic) {
      flow.decision = s_.compression.decide(flow.peer, flow.coding, bytes, flow.bytes - flow.offset, flow.readable);
      return flow.decision.advice == Advice::plain;
    }
    if (!flow.coding.method) return true;
    if (flow.plain_left == 0) return false;
    --flow.plain_left;
    return true;
  }

  // Memory behind a link holds a chunk up before it leaves, and so does the other side's behind it: chunks that grow at a
  // block's beginning and shrink towards its end have wire and links begin sooner and end together. Coding holds it up on
  // this side only: such chunks grow.
  uint64_t next_bytes(const Flow& flow) const {
    const uint64_t left = flow.bytes - flow.offset;
    const uint64_t longest = std::min<uint64_t>(s_.config.chunk_bytes, left);
    const bool prompt = flow.source.memory->prompt();
    if (prompt && !flow.coding.may_code()) return longest;
    const uint64_t whole = (prompt ? flow.offset : std::min(flow.offset, left / 2)) / kWholeBytes * kWholeBytes;
    return std::min(longest, std::max(kShortestChunkBytes, whole));
  }

  // False: no chunk is free.
  bool send_chunk(uint64_t id) {
    Flow& flow = flows_.at(id);
    Chunk* chunk = s_.chunks.take_to_send();
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
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(*flow.operation, flow.source.memory->read(chunk->memory.get(), from, bytes, ticket), ticket,
                 [this, id, chunk, data](Operation* operation, const Status& status) {
                   Flow* wanted = wanted_by(operation, id);
                   if (wanted != nullptr && status.ok()) {
                     return emit(*wanted, id, chunk, fabric::Bytes(chunk->memory.get(), chunk->bytes), data);
                   }
                   s_.chunks.give_back(chunk);
                   if (wanted != nullptr) s_.refuse_block(*operation, wanted->export_index, status);
                 });
    return true;
  }

  // It may have been given up.
  Flow* wanted_by(const Operation* operation, uint64_t id) {
    const auto found = flows_.find(id);
    return operation != nullptr && found != flows_.end() ? &found->second : nullptr;
  }

  void read_to_code(Flow& flow, uint64_t id, Chunk* chunk, uint64_t from, const Message& data) {
    CodedChunk* job = s_.compression.take();
    job->method = flow.decision.method;
    const codecs::Room plain = job->plain_room(chunk->bytes);
    job->in = plain;
    if (const uint8_t* there = flow.source.memory->view(from, plain.size()); there != nullptr) {
      std::copy_n(there, plain.size(), plain.data());
      return code(flow, id, chunk, job, data);
    }
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(*flow.operation, flow.source.memory->read(plain.data(), from, plain.size(), ticket), ticket,
                 [this, id, chunk, job, data](Operation* operation, const Status& status) {
                   Flow* wanted = wanted_by(operation, id);
                   if (wanted != nullptr && status.ok()) return code(*wanted, id, chunk, job, data);
                   s_.compression.give_back(job);
                   s_.chunks.give_back(chunk);
                   if (wanted != nullptr) s_.refuse_block(*operation, wanted->export_index, status);
                 });
  }

  void code(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data) {
    Compression::Plan& coding = flow.coding;
    if (coding.samples) {
      s_.observer.on_sampled(flow.operation->team->spec.client, s_.compression.chooser.sample(job->in));
      coding = {};
    }
    codecs::Method method = coding.automatic ? job->method : coding.method;
    if (coding.automatic && !method) {  // none yet: it is to be looked at
      const auto path = [&] { return s_.compression.path_to(flow.peer); };
      method = s_.compression.look(coding, job->in, flow.bytes - flow.offset, flow.readable, path).method;
    }
    const bool whole = data.offset % std::max<size_t>(bytes_of(method.elements), 1) == 0;
    if (!method || !whole) return emit_plain(flow, id, chunk, job, data);
    const size_t worthwhile = job->in.size() - job->in.size() / 16;
    job->method = method;
    job->out = codecs::Room(chunk->memory.get(), worthwhile);
    job->bytes = 0;
    job->path = s_.compression.path_to(flow.peer);
    job->since_ns = s_.compression.now_ns();
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(*flow.operation, s_.compression.coder.encode(*job, ticket), ticket,
                 [this, id, chunk, job, data](Operation* operation, const Status& status) {
                   Flow* wanted = wanted_by(operation, id);
                   if (wanted != nullptr) return emit_coded(*wanted, id, chunk, job, data, status);
                   s_.compression.give_back(job);
                   s_.chunks.give_back(chunk);
                 });
  }

  // Unless it did not become shorter.
  void emit_coded(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data, const Status& status) {
    const size_t bytes = status.ok() ? job->bytes : 0;
    const uint64_t took_ns = s_.compression.now_ns() - job->since_ns;
    if (flow.coding.automatic) {
      s_.compression.chooser.note_chunk(flow.coding.kind, job->method, job->in.size(), bytes, took_ns);
    } else {  // those behind it may be of another kind: they are tried ever more rarely
      flow.plain_left = bytes == 0 ? (uint32_t{1} << std::min(flow.misses++, kMostMisses)) - 1 : 0;
      flow.misses = bytes == 0 ? flow.misses : 0;
    }
    if (bytes == 0) return emit_plain(flow, id, chunk, job, data);
    Message coded = data;
    coded.kind = Kind::coded;
    coded.length = static_cast<uint32_t>(job->in.size());
    coded.check = job->check;
    coded.codec = static_cast<uint8_t>(job->method.codec);
    coded.width = job->method.width;
    s_.traffic.coded_bytes += chunk->bytes;
    s_.traffic.wire_bytes += bytes;
    const bool lossy = codecs::is_lossy(job->method.codec);
    if (lossy) s_.traffic.lossy_bytes += chunk->bytes;
    s_.observer.on_coded(flow.operation->team->spec.client,
                         {chunk->bytes, bytes, lossy, job->largest_error, s_.compression.saved_ns(*job, bytes)});
    s_.compression.give_back(job);
    emit(flow, id, chunk, fabric::Bytes(chunk->memory.get(), bytes), coded);
  }

  void emit_plain(Flow& flow, uint64_t id, Chunk* chunk, CodedChunk* job, const Message& data) {
    std::copy(job->in.begin(), job->in.end(), chunk->memory.get());
    s_.compression.give_back(job);
    emit(flow, id, chunk, fabric::Bytes(chunk->memory.get(), chunk->bytes), data);
  }

  // What was read into the chunk, or lies at `payload`, leaves.
  void emit(Flow& flow, uint64_t id, Chunk* chunk, fabric::Bytes payload, const Message& data) {
    const uint64_t bytes = chunk->bytes;
    s_.compression.note_left(id, flow.peer, bytes, payload.size(), static_cast<codecs::CodecId>(data.codec));
    const bool is_short = payload.size() <= s_.config.batched_bytes;
    uint8_t* shared = is_short ? s_.sender.add_entry(flow.peer, data, payload.size()) : nullptr;
    if (shared != nullptr) {
      std::copy(payload.begin(), payload.end(), shared);
      --flow.in_flight;
      s_.chunks.give_back(chunk);
    } else {
      if (chunk->source != nullptr) hold(*flow.operation, *chunk);
      const bool is_data = !flow.operation->graph.interpreted && data.kind == Kind::data;
      s_.sender.say_from(flow.peer, data, payload, chunk, is_data ? fabric::Of::user_data : fabric::Of::interpreted);
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
