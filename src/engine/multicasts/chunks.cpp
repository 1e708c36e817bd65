// SPDX-License-Identifier: BSD-3-Clause
// Chunks of multicast steps: sent, and heard.
#include "engine/multicasts/multicasts.hpp"

namespace offpath::engine {

using base::Status;
using multicast::Chunks;

namespace {

constexpr uint64_t kStagedBytes = 64 << 10;  // read at a time: what leaves at once,
constexpr uint64_t kFarBytes = 512 << 10;    // and from memory that is far
constexpr size_t kGatheredBytes = 64 << 10;  // written at a time
constexpr size_t kAloneBytes = 8 << 10;      // a copy more takes longer than a write more
constexpr size_t kEarlyDatagrams = 1024;     // of a task that the others have begun
constexpr uint64_t kWorthALook = 128 << 10;  // bytes that came
constexpr uint64_t kProbedNs = 200'000'000;  // for all others to be heard
constexpr std::array<uint64_t, 4> kProbesAtNs{0, 5'000'000, 25'000'000, 100'000'000};

}  // namespace

bool Multicasts::probe(Run& run, uint64_t now) {
  if (run.probing_since_ns == 0 || run.task) return false;
  Circle& circle = *run.circle;
  bool any = false;
  const uint64_t passed = now - std::min(now, run.probing_since_ns);
  while (circle.group != nullptr && run.probes < kProbesAtNs.size() && passed >= kProbesAtNs[run.probes]) {
    if (!circle.group->push(fabric::kProbe | circle.probes, 0, {})) break;
    ++circle.probes;
    ++run.probes;
    any = true;
  }
  const bool all = circle.group != nullptr && circle.heard.size() + 1 >= run.plan.members.size() && run.probes > 0;
  if (!run.listens || (!all && circle.group != nullptr && passed < kProbedNs)) return any;
  run.listens = false;
  const size_t chunk_bytes = all ? circle.group->chunk_bytes() : 0;
  run.arming.arm(run.plan.own, said(run, static_cast<uint32_t>(chunk_bytes)));
  return true;
}

// Read from the program's memory, as many as leave at once.
void Multicasts::stage(Run& run, uint32_t least) {
  const multicast::Shape& shape = run.task->arrivals().shape();
  const uint64_t most = (run.pieces->prompt() ? kStagedBytes : kFarBytes) / run.chunk_bytes;
  const uint32_t chunks = static_cast<uint32_t>(std::clamp<uint64_t>(most / least * least, least, run.to_send.count));
  run.staged_chunks = {run.to_send.first, chunks};
  const uint64_t bytes = shape.bytes(run.plan.own, run.staged_chunks);
  const uint64_t from = address_of(run, run.plan.own, run.staged_chunks.first);
  run.staged.reset();
  auto& kept = run.circle->staged;  // pages that were touched before; not those that a port still writes to
  if (kept == nullptr || kept.use_count() > 1) kept = std::make_shared<std::vector<uint8_t>>();
  if (kept->size() < bytes) kept->resize(bytes);
  const auto staged = run.staged = kept;
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = run.pieces->reach(from + done, bytes - done);
    if (piece == 0) return;
    ++run.reads;
    const memory::Ticket ticket = runner_.next_ticket();
    const auto outcome = run.pieces->read(staged->data() + done, from + done, piece, ticket);
    runner_.when_done(*run.operation, outcome, ticket, [this, staged](Operation* operation, const Status& status) {
      Run* const reader = operation == nullptr ? nullptr : find(*operation);
      if (reader == nullptr) return;
      --reader->reads;
      if (!status.ok() && reader->status.ok()) reader->status = status;
    });
    done += piece;
  }
}

const uint8_t* Multicasts::own_bytes(Run& run, const Chunks& chunks) {
  const uint32_t own = run.plan.own;
  const multicast::Shape& shape = run.task->arrivals().shape();
  const uint8_t* there = run.pieces->view(address_of(run, own, chunks.first), shape.bytes(own, chunks));
  if (there != nullptr) return there;
  const Chunks& staged = run.staged_chunks;
  if (chunks.first < staged.first || chunks.first + chunks.count > staged.first + staged.count) {
    stage(run, chunks.count);
    if (run.reads > 0 || !run.status.ok()) return nullptr;
  }
  return run.staged->data() + shape.offset(own, chunks.first) - shape.offset(own, staged.first);
}

bool Multicasts::send(Run& run) {
  if (!run.sending || run.reads > 0) return false;
  fabric::Group* const group = group_of(run);
  const multicast::Shape& shape = run.task->arrivals().shape();
  bool any = false;
  while (run.to_send.count > 0 && group != nullptr && run.status.ok()) {
    const uint32_t chunk = run.to_send.first;
    if (run.packs && !prepare_pack(run)) {
      if (run.reads > 0) return true;
      break;
    }
    if (run.coding.job != nullptr) {
      if (!send_pack(run, *group)) return any;
      any = true;
      continue;
    }
    const uint64_t bytes = shape.bytes(run.plan.own, {chunk, 1});
    const uint8_t* const data = own_bytes(run, {chunk, 1});
    if (data == nullptr) {
      if (run.reads > 0) return true;
      break;
    }
    if (!group->push(run.operation->key.number, chunk, {data, bytes})) return any;
    core_.note_moved(*run.operation, bytes);
    core_.traffic.sent_bytes += bytes;
    ++run.to_send.first;
    --run.to_send.count;
    any = true;
  }
  if (group != nullptr && !group->idle()) return any;
  run.sending = false;
  end_coding(run);
  run.staged_chunks = {};
  run.staged.reset();
  run.task->sent();
  return true;
}

void Multicasts::on_chunk(const fabric::Label& label, fabric::Bytes chunk) {
  if ((label.task & fabric::kProbe) != 0) {
    hearing_->heard.insert(label.sender);
    return;
  }
  const auto found = hearing_->runs.find(label.task);
  if (found != hearing_->runs.end()) hear(*found->second, label, chunk);
}

void Multicasts::hear(Run& run, const fabric::Label& label, fabric::Bytes chunk) {
  if (!run.task) {
    if (run.early.size() < kEarlyDatagrams) run.early.push_back({label, {chunk.begin(), chunk.end()}});
    return;
  }
  run.since_ns = std::max(run.since_ns, round_ns_);
  const multicast::Shape& shape = run.task->arrivals().shape();
  if (!run.by_multicast || !run.status.ok()) return;
  if ((label.chunk & multicast::kCoded) != 0) return hear_coded(run, label, chunk);
  if (run.task->look(label.chunk) != multicast::Arrival::fresh) return;
  const uint32_t owner = shape.owner(label.chunk);
  if (owner != label.sender || chunk.size() != shape.bytes(owner, {label.chunk, 1})) return;
  run.heard += chunk.size();
  run.meant += chunk.size();
  if (chunk.size() >= kAloneBytes && run.pieces->prompt()) return place(run, owner, {label.chunk, 1}, chunk);
  Run::Gathered& gathered = run.gathered[owner];
  const uint32_t next = gathered.chunks.first + gathered.chunks.count;
  if (gathered.chunks.count > 0) {
    if (label.chunk >= gathered.chunks.first && label.chunk < next) return;
    const bool full = gathered.bytes.size() + chunk.size() > kGatheredBytes;
    if (label.chunk != next || full) write(run, owner, gathered);
  }
  if (gathered.chunks.count == 0) gathered.chunks.first = label.chunk;
  ++gathered.chunks.count;
  gathered.bytes.insert(gathered.bytes.end(), chunk.begin(), chunk.end());
}

void Multicasts::note_received(Run& run, uint64_t bytes) {
  core_.note_moved(*run.operation, bytes);
  core_.traffic.received_bytes += bytes;
  run.received += bytes;
}

// At once, from where they came.
void Multicasts::place(Run& run, uint32_t owner, const Chunks& chunks, fabric::Bytes bytes) {
  note_received(run, bytes.size());
  const uint64_t to = address_of(run, owner, chunks.first);
  for (uint64_t done = 0; done < bytes.size();) {
    const uint64_t piece = run.pieces->reach(to + done, bytes.size() - done);
    if (piece == 0) break;
    const memory::Outcome outcome = run.pieces->write(to + done, bytes.data() + done, piece, {});
    if (!outcome.ok() && run.status.ok()) run.status = outcome.status();
    done += piece;
  }
  run.task->note(chunks);
}

bool Multicasts::write_all(Run& run) {
  bool any = false;
  for (auto& [owner, gathered] : run.gathered) {
    if (gathered.chunks.count == 0) continue;
    write(run, owner, gathered);
    any = true;
  }
  return any;
}

void Multicasts::write(Run& run, uint32_t owner, Run::Gathered& gathered) {
  struct Placing {
    Chunks chunks;
    size_t left = 1;
    std::vector<uint8_t> bytes;
  };
  const auto placing = std::make_shared<Placing>();
  placing->chunks = std::exchange(gathered.chunks, {});
  placing->bytes.swap(gathered.bytes);
  const uint64_t bytes = placing->bytes.size();
  const uint64_t to = address_of(run, owner, placing->chunks.first);
  ++run.writes;
  note_received(run, bytes);
  const auto placed = [this, placing](Operation* operation, const Status& status) {
    Run* const writer = operation == nullptr ? nullptr : find(*operation);
    if (writer == nullptr) return;
    if (!status.ok() && writer->status.ok()) writer->status = status;
    if (--placing->left > 0) return;
    --writer->writes;
    writer->task->note(placing->chunks);
  };
  for (uint64_t done = 0; done < bytes;) {
    const uint64_t piece = run.pieces->reach(to + done, bytes - done);
    if (piece == 0) break;
    ++placing->left;
    const memory::Ticket ticket = runner_.next_ticket();
    runner_.when_done(*run.operation, run.pieces->write(to + done, placing->bytes.data() + done, piece, ticket), ticket,
                      placed);
    done += piece;
  }
  placed(run.operation, {});
  if (run.pieces->prompt()) {  // it is here again: nothing is allocated for the next ones
    gathered.bytes.swap(placing->bytes);
    gathered.bytes.clear();
  }
}

// Nothing else is under way, and what is missing takes its time.
uint64_t Multicasts::rest_ns() const {
  uint64_t rest = runs_.empty() || core_.operations.size() != runs_.size() ? 0 : UINT64_MAX;
  for (const auto& [id, run] : runs_) {
    if (!run->by_multicast || !run->task || run->rate == 0 || !run->task->listens()) return 0;
    const double left = run->meant == 0 ? 1 : static_cast<double>(run->heard) / static_cast<double>(run->meant);
    const auto missing = static_cast<uint64_t>(left * run->task->arrivals().missing() * run->chunk_bytes);
    rest = std::min(rest, std::min(missing, kWorthALook) * 1'000'000'000 / run->rate);
  }
  return rest;
}

}  // namespace offpath::engine
