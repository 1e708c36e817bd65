// SPDX-License-Identifier: BSD-3-Clause
// Chunks of multicast steps: sent, heard, fetched.
#include "base/random.hpp"
#include "engine/multicasts.hpp"

namespace offpath::engine {

using base::Status;
using multicast::Chunks;
using wire::Kind;
using wire::Message;

namespace {

constexpr uint64_t kStagedBytes = 64 << 10;  // read at a time: what leaves at once,
constexpr uint64_t kFarBytes = 512 << 10;    // and from memory that is far
constexpr size_t kGatheredBytes = 64 << 10;  // written at a time
constexpr size_t kAloneBytes = 8 << 10;      // a copy more takes longer than a write more
constexpr size_t kEarlyDatagrams = 1024;     // of a task that the others have begun
constexpr uint64_t kProbedNs = 200'000'000;  // for all others to be heard
constexpr std::array<uint64_t, 4> kProbesAtNs{0, 5'000'000, 25'000'000, 100'000'000};
constexpr size_t kMostFetchExports = 2 * kMaxFetches;

}  // namespace

bool Engine::State::Multicasts::probe(Run& run, uint64_t now) {
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
void Engine::State::Multicasts::stage(Run& run, uint32_t least) {
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
    const memory::Ticket ticket = s_.next_ticket();
    const auto outcome = run.pieces->read(staged->data() + done, from + done, piece, ticket);
    s_.when_done(*run.operation, outcome, ticket, [this, staged](Operation* operation, const Status& status) {
      Run* const reader = operation == nullptr ? nullptr : find(*operation);
      if (reader == nullptr) return;
      --reader->reads;
      if (!status.ok() && reader->status.ok()) reader->status = status;
    });
    done += piece;
  }
}

const uint8_t* Engine::State::Multicasts::own_bytes(Run& run, const Chunks& chunks) {
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

bool Engine::State::Multicasts::send(Run& run) {
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
    s_.note_moved(*run.operation, bytes);
    s_.traffic.sent_bytes += bytes;
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

void Engine::State::Multicasts::on_chunk(const fabric::Label& label, fabric::Bytes chunk) {
  if ((label.task & fabric::kProbe) != 0) {
    hearing_->heard.insert(label.sender);
    return;
  }
  const auto found = hearing_->runs.find(label.task);
  if (found != hearing_->runs.end()) hear(*found->second, label, chunk);
}

void Engine::State::Multicasts::hear(Run& run, const fabric::Label& label, fabric::Bytes chunk) {
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

void Engine::State::Multicasts::note_received(Run& run, uint64_t bytes) {
  s_.note_moved(*run.operation, bytes);
  s_.traffic.received_bytes += bytes;
  run.received += bytes;
}

// At once, from where they came.
void Engine::State::Multicasts::place(Run& run, uint32_t owner, const Chunks& chunks, fabric::Bytes bytes) {
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

bool Engine::State::Multicasts::write_all(Run& run) {
  bool any = false;
  for (auto& [owner, gathered] : run.gathered) {
    if (gathered.chunks.count == 0) continue;
    write(run, owner, gathered);
    any = true;
  }
  return any;
}

void Engine::State::Multicasts::write(Run& run, uint32_t owner, Run::Gathered& gathered) {
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
    const memory::Ticket ticket = s_.next_ticket();
    s_.when_done(*run.operation, run.pieces->write(to + done, placing->bytes.data() + done, piece, ticket), ticket,
                 placed);
    done += piece;
  }
  placed(run.operation, {});
  if (run.pieces->prompt()) {  // it is here again: nothing is allocated for the next ones
    gathered.bytes.swap(placing->bytes);
    gathered.bytes.clear();
  }
}

void Engine::State::Multicasts::fetch(Run& run, const multicast::Act& act) {
  Operation& operation = *run.operation;
  Team& team = *operation.team;
  const uint32_t peer = run.plan.members[act.to];
  const uint64_t bytes = run.task->arrivals().shape().bytes(act.part, act.run);
  uint32_t index = static_cast<uint32_t>(operation.steps.size());
  if (run.free_steps.empty()) {
    operation.graph.steps.emplace_back();
    operation.steps.emplace_back();
  } else {
    index = run.free_steps.back();
    run.free_steps.pop_back();
  }
  operation.graph.steps[index] = {
      .kind = StepKind::fetch, .peer = peer, .tag = graph::kFetchTags + run.fetch_count++, .bytes = bytes};
  operation.steps[index] = {};
  ++operation.steps_left;
  run.fetches[index] = {act.part, act.run};
  Message message = about(Kind::fetch, team, operation.key.channel, operation.key.number, peer, team.spec.rank,
                          operation.graph.steps[index].tag);
  message.bytes = bytes;
  message.codecs = s_.compression.coder.readable();
  message.part = act.part;
  message.first = act.run.first;
  message.count = act.run.count;
  while (message.pull_id == 0 || s_.pulls.contains(message.pull_id)) message.pull_id = base::random_u64();
  s_.pulls.emplace(message.pull_id, Pull{.operation = &operation,
                                         .step = index,
                                         .target = {run.pieces, address_of(run, act.part, act.run.first)},
                                         .limit = bytes});
  s_.send(team, peer, message);
}

void Engine::State::Multicasts::end_fetch(Operation& operation, uint32_t step, const Status& status, uint64_t bytes) {
  operation.steps[step].done = true;
  --operation.steps_left;
  Run* const run = find(operation);
  if (run == nullptr) return;
  const auto [part, chunks] = run->fetches.extract(step).mapped();
  run->free_steps.push_back(step);
  run->received += bytes;
  if (!status.ok() && run->status.ok()) run->status = status;
  if (run->status.ok() && bytes != operation.graph.steps[step].bytes) {
    run->status = Status::error(OFFPATH_ERR_INTERNAL, "member %u has sent a part of what was fetched",
                                operation.graph.steps[step].peer);
  }
  run->task->fetched(chunks);
  pump(*run);
}

void Engine::State::Multicasts::handle_fetch(const Message& message) {
  const auto team = s_.find_team(message.team, message.from);
  if (team == nullptr) return s_.handle_absent({message.team, message.from}, message, {});
  const bool possible = message.to < team->spec.members.size() && message.channel == wire::Channel::collectives;
  if (!possible) return s_.refuse_message("a fetch that cannot be");
  const auto found = team->operations.find({.number = message.number});
  Run* const run = found == team->operations.end() ? nullptr : find(*found->second);
  const auto refuse = [&](offpath_status_t status) { s_.refuse_pull(*team, message.to, message.pull_id, status); };
  if (run == nullptr || !run->task) return refuse(OFFPATH_ERR_STATE);
  Operation& operation = *run->operation;
  const Chunks chunks{message.first, message.count};
  const uint32_t successor = run->task->successor();
  const bool may = message.to == run->plan.members[successor] && run->task->may_pull(successor, message.part, chunks);
  if (!may || message.tag < graph::kFetchTags || message.tag == kEndingTag) return refuse(OFFPATH_ERR_STATE);
  if (!run->status.ok()) return refuse(run->status.code());
  const uint64_t bytes = run->task->arrivals().shape().bytes(message.part, chunks);
  if (message.bytes < bytes) return refuse(OFFPATH_ERR_TRUNCATED);
  auto& exports = operation.exports;
  size_t index = exports.size();
  for (size_t i = exports.size(); i-- > operation.graph.sealed();) {
    const bool over = exports[i].state == ExportState::resolved;
    if (!over && operation.graph.exports[i].tag == message.tag) return refuse(OFFPATH_ERR_STATE);
    if (over) index = i;
  }
  if (index - operation.graph.sealed() >= kMostFetchExports) return refuse(OFFPATH_ERR_STATE);
  if (index == exports.size()) {
    operation.graph.exports.emplace_back();
    exports.emplace_back();
  }
  // What is passed on loses nothing any more: it counts as no memory of this member's.
  const auto place = message.part == run->plan.own ? graph::Place() : graph::scratch_place(0);
  operation.graph.exports[index] = {.peer = message.to, .tag = message.tag, .place = place, .bytes = bytes, .next = {}};
  exports[index] = {};
  ++operation.exports_left;
  ExportProgress& progress = exports[index];
  progress.state = ExportState::requested;
  progress.pushable = false;  // what is pushed is found by an export's tag
  progress.pull_id = message.pull_id;
  progress.limit = message.bytes;
  progress.readable = message.codecs;
  const Location source{run->pieces, address_of(*run, message.part, message.first)};
  for (const auto& carrier : s_.carriers) {
    if (carrier->take(operation, static_cast<uint32_t>(index), source, true)) return;
  }
}

}  // namespace offpath::engine
