// SPDX-License-Identifier: BSD-3-Clause
// What the nodes of a multicast step agree on before it runs: that all are armed, and whether its group is used.
#include "engine/multicasts/multicasts.hpp"

#include "base/log.hpp"
#include "engine/rooms/exports.hpp"
#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using wire::Kind;
using wire::Message;
using Said = wire::Word;

namespace {

constexpr uint32_t kRingChunkBytes = 4096;  // without a group
constexpr size_t kPackBytes = 16 << 10;     // that are coded together: longer ones are lost more often

// Differs where nodes were told different lengths.
uint64_t digest_of(const graph::Multicast& plan) {
  uint64_t digest = 0xcbf29ce484222325;
  const auto add = [&](uint64_t value) { digest = (digest ^ value) * 0x100000001b3; };
  for (const auto& part : plan.parts) {
    add(part.size());
    for (const auto& piece : part) add(piece.bytes);
  }
  return digest;
}

}  // namespace

Message word_of(Said word) {
  Message message;
  message.kind = Kind::task;
  message.word = word;
  message.chunk_bytes = kRingChunkBytes;
  return message;
}

void Multicasts::join(Run& run, size_t chunk_bytes) {
  Circle& circle = *run.circle;
  circle.group.reset();
  std::erase_if(circles_, [](const auto& entry) {
    const auto one = entry.lock();
    return one == nullptr || one->group == nullptr;
  });
  if (circles_.size() >= config_.multicast_groups || run.plan.members.size() < 2) return;
  auto group = fabric_.join(
      {run.operation->team->spec.id.bytes, run.plan.own, static_cast<uint32_t>(run.plan.members.size()), chunk_bytes});
  if (!group.ok()) return base::log_write(base::LogLevel::info, "no multicast: %s", group.status().text());
  circle.group = std::move(group.value());
  circles_.push_back(run.circle);
}

std::vector<Message> Multicasts::take_early(const Operation& operation) {
  Circle* const circle = operation.team->circle.get();
  if (circle == nullptr || operation.part != Part::collective) return {};
  auto node = circle->early.extract(operation.key.number);
  if (node.empty()) return {};
  circle->early_count -= static_cast<uint32_t>(node.mapped().size());
  return std::move(node.mapped());
}

bool Multicasts::is_awaited(const Team& team) const { return team.circle != nullptr && team.circle->early_count > 0; }

void Multicasts::leave(Team& team) {
  const std::shared_ptr<Circle> circle = std::move(team.circle);
  if (circle == nullptr) return;
  for (const auto& [number, words] : circle->early) {
    for (const Message& word : words) on_absent(team, word);
  }
}

void Multicasts::on_absent(Team& team, const Message& message) {
  if (message.kind == Kind::task && message.word != Said::armed) return;  // of an operation that has ended
  const uint32_t asker = message.kind == Kind::task ? message.from : message.to;
  if (asker >= team.spec.members.size()) return core_.refuse_message("a member that the team does not have");
  if (message.kind == Kind::fetch) return exports_.answer_departed(team, message);
  if (!peers_.say_abandoned(team, asker)) decline(team, message);
}

multicast::Word Multicasts::said(Run& run, uint32_t chunk_bytes) {
  Circle& circle = *run.circle;
  const uint64_t link = circle.group == nullptr ? 0 : circle.group->link_rate();
  const uint64_t rate = config_.multicast_rate > 0 ? config_.multicast_rate : link;
  const uint32_t seals = circle.group == nullptr ? 0 : circle.group->seals();
  const uint32_t lost = std::exchange(circle.lost, 0), of = std::exchange(circle.of, 0);
  return {run.status.code(), chunk_bytes, digest_of(run.plan), rate, lost, of, seals, compression_.coder.readable()};
}

void Multicasts::pass_on(Run& run, const multicast::Word& word) {
  Message armed = word_of(Said::armed);
  armed.status = word.status;
  armed.chunk_bytes = word.chunk_bytes;
  armed.digest = word.digest;
  armed.rate = word.rate;
  armed.first = word.lost;
  armed.count = word.of;
  armed.tag = word.seals;
  armed.codecs = word.codecs;
  say(run, run.arming.parent(), armed);
}

bool Multicasts::arm(Run& run, uint32_t node, const Message& armed) {
  return !run.task && run.arming.arm(node, {armed.status, armed.chunk_bytes, armed.digest, armed.rate, armed.first,
                                            armed.count, armed.tag, armed.codecs});
}

// At the root: all nodes have said what they can. Known from before, or found out by probes.
void Multicasts::decide(Run& run, const multicast::Word& word) {
  using Known = Circle::Known;
  Circle& circle = *run.circle;
  circle.rate.note(word.lost, word.of);
  if (!circle.rate.works() && circle.known != Known::does_not) {
    circle.known = Known::does_not;
    base::log_write(base::LogLevel::warn, "a team's multicast group loses most chunks: given up");
  }
  Message answer = word_of(Said::ring);
  answer.status = word.status;
  if (word.status == OFFPATH_OK) {
    if (word.chunk_bytes == 0) circle.known = Known::does_not;
    if (circle.known == Known::nothing && run.probed) circle.known = Known::works;
    if (circle.known != Known::does_not) {
      answer.word = circle.known == Known::works ? Said::go : Said::probe;
      answer.chunk_bytes = word.chunk_bytes;
      answer.rate = static_cast<uint64_t>(static_cast<double>(word.rate) * circle.rate.part());
      answer.first = config_.multicast_chains;
      answer.tag = word.seals;
      answer.codecs = word.codecs;
      answer.count = multicast::Packs::chunks_for(word.chunk_bytes, std::min(kPackBytes, config_.chunk_bytes));
    }
  }
  obey(run, answer);
}

void Multicasts::obey(Run& run, const Message& message) {
  for (const uint32_t child : run.arming.children()) say(run, child, message);
  if (message.status != OFFPATH_OK) {
    if (run.status.ok()) {
      const auto code = static_cast<offpath_status_t>(message.status);
      run.status = Status::error(code, "a node cannot take part in the multicast: %s", offpath_status_string(code));
    }
    return end(run);
  }
  if (message.word == Said::probe) {
    run.arming.next_round();
    run.probed = true;
    const bool fits = run.circle->group != nullptr && run.circle->group->chunk_bytes() == message.chunk_bytes;
    if (!fits) join(run, message.chunk_bytes);
    run.probing_since_ns = now_ns();
    run.probes = 0;
    run.listens = true;
    return;
  }
  if (message.word == Said::ring) run.circle->group.reset();  // it does not work
  start(run, message);
}

void Multicasts::decline(Team& team, const Message& armed) {
  if (team.broken && peers_.pass_loss_on(team, armed.from, armed.number)) return;
  Message no = about(Kind::task, team, armed.channel, armed.number, team.spec.rank, armed.from);
  no.word = Said::ring;
  no.status = team.broken ? OFFPATH_ERR_NOT_STARTED : OFFPATH_ERR_STATE;
  peers_.send(team, armed.from, no);
}

void Multicasts::add_silent(const Operation& operation, std::set<uint32_t>& members) const {
  const Run* run = find(operation);
  if (run == nullptr || run->task || run->arming.said()) return;
  for (const uint32_t child : run->arming.children()) {
    if (!run->arming.has(child)) members.insert(run->plan.members[child]);
  }
}

void Multicasts::on_ended(Operation& operation, uint32_t member) {
  Run* run = find(operation);
  const auto node = run == nullptr || run->task ? std::nullopt : run->node_of(member);
  if (node && !run->arming.has(*node) && run->arming.arm(*node, {.status = OFFPATH_ERR_STATE})) pump(*run);
}

}  // namespace offpath::engine
