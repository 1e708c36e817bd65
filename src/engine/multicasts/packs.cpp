// SPDX-License-Identifier: BSD-3-Clause
// Chunks of multicast steps that are coded together. Who sends decides for all who hear him, and says in each datagram how it is coded.
#include "engine/multicasts/multicasts.hpp"
#include "engine/rooms/exports.hpp"

namespace offpath::engine {

using base::Status;
using multicast::Chunks;

// What the root says about packs, and what this member wishes of its own part.
void Multicasts::plan_coding(Run& run, const wire::Message& go) {
  run.packs = multicast::Packs::make(go.count, run.chunk_bytes);
  const Operation& operation = *run.operation;
  const multicast::Shape& shape = run.task->arrivals().shape();
  run.coding.readable = go.codecs;
  if (!run.packs || shape.part_bytes(run.plan.own) == 0) return;
  const auto& wish = operation.team->spec.compress ? *operation.team->spec.compress : config_.compress;
  run.coding.plan =
      compression_.plan(wish, operation.graph, run.plan, wire::TeamIdHash()(operation.team->spec.id), go.codecs);
  if (run.coding.plan.automatic) compression_.chooser.begin(run.coding.plan.kind);
  run.coding.since_ns = now_ns();
}

void Multicasts::end_coding(Run& run) {
  MulticastRun::Coding& coding = run.coding;
  if (coding.plan.automatic) compression_.chooser.earn(static_cast<double>(now_ns() - coding.since_ns));
  if (coding.job != nullptr) compression_.give_back(coding.job);
  coding.plan = {};
  coding.job = nullptr;
}

// Senders keep to a rate, so nothing has to be found out about links. The nodes' processors are taken to be alike.
codecs::Path Multicasts::path_of(const Run& run) {
  codecs::Path path;
  fabric::Group* const group = group_of(run);
  if (group == nullptr || run.rate == 0) return path;
  path.known = true;
  path.link_ns = 1e9 * run.senders / static_cast<double>(run.rate);
  path.waiting_ns = static_cast<double>(group->busy_ns(now_ns()));
  path.waits = path.waiting_ns > 0;
  path.decode_ns = compression_.decode_ns();
  for (double& ns : path.decode_ns) ns *= run.senders;  // each decodes what all of them send meanwhile
  return path;
}

bool Multicasts::prepare_pack(Run& run) {
  MulticastRun::Coding& coding = run.coding;
  const Chunks decided = coding.decided;
  const bool same = run.to_send.first >= decided.first && run.to_send.first < decided.first + decided.count;
  if (same || (!coding.plan.may_code() && !coding.plan.samples)) return true;
  const multicast::Shape& shape = run.task->arrivals().shape();
  const Chunks pack = run.packs->pack_of(shape, run.to_send.first);
  const uint64_t bytes = shape.bytes(run.plan.own, pack), rest = shape.bytes(run.plan.own, run.to_send);
  const uint8_t* const data = own_bytes(run, pack);
  if (data == nullptr) return false;
  coding.decided = pack;
  codecs::Method method = coding.plan.method;
  bool looks = false;
  if (coding.plan.samples) {
    core_.observer.on_sampled(run.operation->team->spec.client, compression_.chooser.sample({data, bytes}));
    coding.plan = {};
    return true;
  }
  const codecs::Path path = path_of(run);
  if (coding.plan.automatic) {
    const auto decision = compression_.chooser.decide(coding.plan.kind, bytes, rest, path, coding.readable);
    method = decision.method;
    looks = decision.advice == codecs::Chooser::Advice::look;
    if (!method && !looks) return true;
  } else if (coding.tries.pass()) {
    return true;
  }
  CodedChunk* const job = compression_.take();
  const codecs::Room plain = job->plain_room(bytes);
  std::copy_n(data, bytes, plain.data());
  if (looks) {
    method = compression_.look(coding.plan, plain, rest, coding.readable, [&] { return path_of(run); }).method;
  }
  const size_t worthwhile = run.packs->worthwhile(pack, bytes);
  if (!method || worthwhile == 0) {
    compression_.give_back(job);
    return true;
  }
  job->method = method;
  job->in = plain;
  job->kept.resize(worthwhile);
  job->out = job->kept;
  job->bytes = 0;
  job->path = path;
  job->since_ns = now_ns();
  ++run.reads;
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(*run.operation, compression_.coder.encode(*job, ticket), ticket,
                    [this, job](Operation* operation, const Status& status) {
                      Run* const sender = operation == nullptr ? nullptr : find(*operation);
                      if (sender == nullptr) return compression_.give_back(job);
                      --sender->reads;
                      take_coded(*sender, job, status);
                    });
  return run.reads == 0;
}

// Unless it did not become shorter: then the pack goes as it is.
void Multicasts::take_coded(Run& run, CodedChunk* job, const Status& status) {
  MulticastRun::Coding& coding = run.coding;
  const size_t bytes = status.ok() ? job->bytes : 0;
  const uint64_t took_ns = now_ns() - job->since_ns;
  if (coding.plan.automatic) {
    compression_.chooser.note_chunk(coding.plan.kind, job->method, job->in.size(), bytes, took_ns);
    if (bytes > 0) compression_.try_decoding(*job);
  } else {
    coding.tries.note(bytes > 0);
  }
  if (bytes == 0) return compression_.give_back(job);
  coding.job = job;
  coding.coded = {static_cast<uint32_t>(bytes), job->check, static_cast<uint8_t>(job->method.codec), job->method.width};
  coding.left = run.packs->datagrams(coding.coded.bytes);
  const uint64_t plain = job->in.size(), wire = bytes + coding.left * multicast::kCodedHeadBytes;
  const bool lossy = codecs::is_lossy(job->method.codec);
  exports_.note_coded(*run.operation, {plain, wire, lossy, job->largest_error, compression_.saved_ns(*job, wire)});
}

bool Multicasts::send_pack(Run& run, fabric::Group& group) {
  MulticastRun::Coding& coding = run.coding;
  const codecs::Bytes bytes = codecs::Bytes(coding.job->kept).first(coding.coded.bytes);
  const uint32_t datagrams = run.packs->datagrams(coding.coded.bytes);
  for (; coding.left > 0; --coding.left) {
    const uint32_t index = datagrams - coding.left;
    const uint32_t number = multicast::kCoded | (coding.decided.first + index);
    if (!group.push(run.operation->key.number, number, run.packs->write(coding.coded, bytes, index))) return false;
  }
  core_.note_moved(*run.operation, coding.job->in.size());
  core_.traffic.sent_bytes += coding.job->in.size();
  compression_.give_back(std::exchange(coding.job, nullptr));
  run.to_send.first += coding.decided.count;
  run.to_send.count -= coding.decided.count;
  return true;
}

// What is not what it says counts as lost: it is fetched.
void Multicasts::hear_coded(Run& run, const fabric::Label& label, fabric::Bytes datagram) {
  if (!run.packs || run.task->complete() || label.sender == run.plan.own) return;
  auto whole = run.packs->take(run.task->arrivals(), label.sender, label.chunk, datagram);
  if (!whole) return;
  const codecs::Method method{static_cast<codecs::CodecId>(whole->coded.codec), whole->coded.width, 0};
  const bool known = whole->coded.codec > 0 && whole->coded.codec < 32 && codecs::is_width(whole->coded.width) &&
                     (compression_.coder.readable() & codecs::bit_of(method.codec)) != 0;
  if (!known) return;
  const uint64_t bytes = run.task->arrivals().shape().bytes(label.sender, whole->pack);
  run.heard += whole->bytes.size();
  run.meant += bytes;
  CodedChunk* const job = compression_.take();
  job->method = method;
  job->kept.swap(whole->bytes);
  job->in = job->kept;
  job->out = job->plain_room(bytes);  // not where it belongs: a part of that may be there, and in use
  job->since_ns = now_ns();
  ++run.writes;
  const memory::Ticket ticket = runner_.next_ticket();
  runner_.when_done(
      *run.operation, compression_.coder.decode(*job, ticket), ticket,
      [this, job, pack = whole->pack, check = whole->coded.check](Operation* operation, const Status& status) {
        Run* const reader = operation == nullptr ? nullptr : find(*operation);
        if (reader != nullptr) {
          --reader->writes;
          compression_.note_decoded(*job);
          // What has lost something is not the same as what is fetched, which may be on its way there.
          const bool late = codecs::is_lossy(job->method.codec) && !reader->task->listens();
          if (status.ok() && job->check == check && !late) place_pack(*reader, pack, job->out);
        }
        compression_.give_back(job);
      });
}

void Multicasts::place_pack(Run& run, const Chunks& pack, codecs::Bytes bytes) {
  const multicast::Arrivals& arrivals = run.task->arrivals();
  const multicast::Shape& shape = arrivals.shape();
  const uint32_t owner = shape.owner(pack.first), end = pack.first + pack.count;
  for (Chunks gap = arrivals.gap(owner, pack.first, pack.count); gap.count > 0 && gap.first < end;) {
    gap.count = std::min(gap.count, end - gap.first);
    const codecs::Bytes its =
        bytes.subspan(shape.offset(owner, gap.first) - shape.offset(owner, pack.first), shape.bytes(owner, gap));
    const uint32_t next = gap.first + gap.count;
    if (run.pieces->prompt()) {
      place(run, owner, gap, its);
    } else {
      Run::Gathered gathered{gap, {its.begin(), its.end()}};
      write(run, owner, gathered);
    }
    if (next >= end) return;
    gap = arrivals.gap(owner, next, end - next);
  }
}

}  // namespace offpath::engine
