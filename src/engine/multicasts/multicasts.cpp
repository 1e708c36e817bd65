// SPDX-License-Identifier: BSD-3-Clause
// Multicast steps: how they begin, run and end, and what their nodes tell each other meanwhile.
#include "engine/multicasts/multicasts.hpp"

#include "engine/rooms/peers.hpp"

namespace offpath::engine {

using base::Status;
using multicast::Act;
using wire::Kind;
using wire::Message;
using Said = wire::Word;

namespace {

constexpr size_t kHeldWords = 8;            // a token, and what the two neighbours may have said
constexpr uint64_t kQuietNs = 20'000'000;   // nothing was heard for that long: what is missing is fetched
constexpr uint64_t kBatchBytes = 64 << 10;  // that leave at once: senders are quiet for as long as they last

std::vector<uint64_t> lengths_of(const graph::Multicast& plan) {
  std::vector<uint64_t> out;
  for (const auto& part : plan.parts) {
    out.push_back(0);
    for (const auto& piece : part) out.back() += piece.bytes;
  }
  return out;
}

bool has_multicast(const Operation& operation) {
  const auto& steps = operation.graph.steps;
  for (uint32_t i = 0; i < operation.own_steps; ++i) {
    if (steps[i].kind == StepKind::multicast && !operation.steps[i].done) return true;
  }
  return false;
}

}  // namespace

Multicasts::Run* Multicasts::find(const Operation& operation) const {
  const auto found = runs_.find(operation.id);
  return found == runs_.end() ? nullptr : found->second.get();
}

void Multicasts::begin_step(Operation& operation, uint32_t step) {
  const graph::Multicast& plan = *operation.graph.steps[step].multicast;
  Team& team = *operation.team;
  if (operation.part != Part::collective || runs_.contains(operation.id)) {
    return runner_.finish_step(operation, step, Status::error(OFFPATH_ERR_STATE, "one multicast at a time"), 0);
  }
  Run& run = *runs_.emplace(operation.id, std::make_unique<Run>(operation, step, plan)).first->second;
  if (team.circle == nullptr) team.circle = std::make_shared<Circle>();
  run.circle = team.circle;
  run.circle->runs[operation.key.number] = &run;
  for (const auto& part : plan.parts) {
    run.begin.push_back(run.pieces->bytes());
    for (const auto& piece : part) {
      Location place;
      const Status status = piece.bytes > 0 ? operation.resolve(piece.place, place) : Status();
      if (!status.ok() && run.status.ok()) run.status = status;
      run.pieces->add(std::move(place), piece.bytes);
    }
  }
  if (operation.steps[step].failed) run.status = operation.status;
  if (run.status.ok()) run.status = operation.shortfall();  // a part that is not whole here is nobody's
  if (!std::exchange(run.circle->tried, true)) join(run, 0);
  const std::vector<Message> waiting = take_early(operation);
  const auto* group = run.circle->group.get();
  const auto chunk_bytes = static_cast<uint32_t>(group == nullptr ? 0 : group->chunk_bytes());
  run.arming.arm(plan.own, said(run, chunk_bytes));
  for (const Message& message : waiting) handle_task(message);
  if (Run* const begun = find(operation); begun != nullptr) pump(*begun);
}

// Another task may have given the team's group up, or joined it anew.
fabric::Group* Multicasts::group_of(const Run& run) {
  fabric::Group* const group = run.circle->group.get();
  return run.by_multicast && group != nullptr && group->chunk_bytes() == run.chunk_bytes ? group : nullptr;
}

void Multicasts::forget(Operation& operation) {
  take_early(operation);
  const auto found = runs_.find(operation.id);
  if (found == runs_.end()) return;
  end_coding(*found->second);
  found->second->circle->runs.erase(operation.key.number);
  runs_.erase(found);
}

void Multicasts::say(Run& run, uint32_t node, const Message& message) {
  Team& team = *run.operation->team;
  const OperationKey& key = run.operation->key;
  const uint32_t to = run.plan.members[node];
  peers_.send(team, to, addressed(message, team, key.channel, key.number, team.spec.rank, to));
}

bool Multicasts::pump(Run& run) {
  bool any = false;
  if (const auto word = run.arming.take()) {
    if (run.arming.is_root()) {
      const Operation& operation = *run.operation;
      decide(run, *word);
      Run* const decided = find(operation);
      if (decided != nullptr && decided->task) pump(*decided);
      return true;
    }
    any = true;
    pass_on(run, *word);
  }
  if (!run.task) return any;
  while (const auto act = run.task->next()) {
    any = true;
    Message message = word_of(act->kind == Act::Kind::token   ? Said::token
                              : act->kind == Act::Kind::need  ? Said::need
                              : act->kind == Act::Kind::ready ? Said::ready
                                                              : Said::fin);
    message.tag = act->part;
    const bool asks = act->kind == Act::Kind::need || act->kind == Act::Kind::fin;
    if (asks) message.first = ++run.questions_asked;
    if (act->kind == Act::Kind::send) {
      run.sending = true;
      run.to_send = act->run;
    } else if (act->kind == Act::Kind::pull) {
      fetch(run, *act);
    } else {
      say(run, act->to, message);
    }
  }
  const bool over = run.task->done() && !run.sending && run.writes == 0 && run.reads == 0 && run.fetches.empty();
  if (over) end(run);
  return any || over;
}

void Multicasts::start(Run& run, const Message& message) {
  auto shape = multicast::Shape::make(lengths_of(run.plan), message.chunk_bytes);
  if (!shape) {
    run.status = Status::error(OFFPATH_ERR_ARGUMENT, "too long for a multicast. Name another algorithm");
    return end(run);
  }
  run.senders = multicast::Chains(*shape, message.first).heard();
  run.by_multicast = message.word == Said::go;
  run.chunk_bytes = message.chunk_bytes;
  if (fabric::Group* const group = group_of(run); group != nullptr) {
    group->set_rate(static_cast<double>(message.rate) / 1e9 / run.senders);
    group->set_seals(message.tag);
  }
  run.quiet_ns = kQuietNs + (message.rate > 0 ? 4 * kBatchBytes * 1'000'000'000 * run.senders / message.rate : 0);
  run.since_ns = now_ns();
  run.rate = message.rate;
  run.listens = false;
  const multicast::Task::Config config{.chains = message.first, .fetch = {.run = 4096, .pulls = kMaxFetches}};
  run.task.emplace(std::move(*shape), run.plan.own, config);
  if (run.by_multicast) plan_coding(run, message);
  for (const uint32_t member : run.plan.members) {  // they are armed, so they have their end of the team
    run.operation->note_begun(member);
    run.operation->team->exchange.note_present(member);
  }
  run.task->go(run.by_multicast);
  for (const Message& held : std::exchange(run.held, {})) take_word(run, *run.node_of(held.from), held);
  for (const auto& early : std::exchange(run.early, {})) hear(run, early.label, early.bytes);
}

void Multicasts::take_word(Run& run, uint32_t node, const Message& message) {
  multicast::Task& task = *run.task;
  const bool asks = message.word == Said::need || message.word == Said::fin;
  if (asks && node == task.successor()) {  // the last question counts, and messages may overtake each other
    if (message.first <= run.questions_heard) return;
    run.questions_heard = message.first;
  }
  const bool proper = message.word == Said::token   ? !run.by_multicast || task.token(node)
                      : message.word == Said::need  ? task.need(node, message.tag)
                      : message.word == Said::ready ? task.ready(node, message.tag)
                                                    : task.fin(node);
  if (!proper) core_.refuse_message("a word of a multicast out of turn");
}

void Multicasts::end(Run& run) {
  Operation& operation = *run.operation;
  const uint32_t step = run.step;
  const Status status = run.status;
  const uint64_t received = run.received;
  if (run.by_multicast && run.task) {
    const auto less = [](uint64_t all, uint64_t part) { return all - std::min(all, part); };
    uint64_t of = run.task->arrivals().shape().chunks() - run.task->arrivals().shape().part(run.plan.own).count;
    uint64_t lost = run.task->repaired();
    if (run.packs) of = less(of, run.packs->spared()), lost = less(lost, run.packs->fetched_too());
    run.circle->lost += static_cast<uint32_t>(std::min(lost, of));
    run.circle->of += static_cast<uint32_t>(of);
  }
  forget(operation);
  runner_.finish_step(operation, step, status, received);
}

void Multicasts::on_message(const Message& message, fabric::Bytes) {
  message.kind == Kind::task ? handle_task(message) : handle_fetch(message);
}

void Multicasts::handle_task(const Message& message) {
  const auto team = core_.find_team(message.team, message.to);
  if (team == nullptr) return peers_.handle_absent({message.team, message.to}, message, {});
  const bool possible = message.from < team->spec.members.size() && message.from != message.to &&
                        message.channel == wire::Channel::collectives;
  if (!possible) return core_.refuse_message("a word of a multicast that cannot be");
  team->exchange.note_present(message.from);
  const auto found = team->operations.find({.number = message.number});
  Operation* const operation = found == team->operations.end() ? nullptr : found->second;
  Run* run = operation == nullptr ? nullptr : find(*operation);
  if (run == nullptr) {
    if (message.word != Said::armed) return;  // late: it has ended here
    const bool to_come = operation == nullptr ? message.number >= team->next_sequence : has_multicast(*operation);
    if (!to_come) return decline(*team, message);
    if (team->circle == nullptr) team->circle = std::make_shared<Circle>();
    if (team->circle->early_count >= config_.parked_limit) return core_.refuse_message("too many early words");
    ++team->circle->early_count;
    team->circle->early[message.number].push_back(message);
    return;
  }
  const auto node = run->node_of(message.from);
  if (!node) return core_.refuse_message("a word of who takes no part in a multicast");
  operation->note_begun(message.from);
  if (message.word == Said::armed) {
    if (!arm(*run, *node, message)) return core_.refuse_message("armed twice");
  } else if (message.word <= Said::ring) {
    const bool proper = !run->task && !run->arming.is_root() && *node == run->arming.parent() &&
                        (run->arming.said() || message.status != OFFPATH_OK);
    if (!proper) return core_.refuse_message("a decision about a multicast out of turn");
    obey(*run, message);
  } else if (!run->task) {
    if (run->held.size() >= kHeldWords) return core_.refuse_message("too many words before a multicast begins");
    run->held.push_back(message);
  } else {
    take_word(*run, *node, message);
  }
  if (run = find(*operation); run != nullptr) pump(*run);
}

void Multicasts::add_waits(const Operation& operation, const Note& note) const {
  const Run* run = find(operation);
  if (run == nullptr) return;
  const auto& members = run->plan.members;
  std::set<uint32_t> awaited;
  if (run->task) {
    awaited.insert(members[run->task->complete() ? run->task->successor() : run->task->predecessor()]);
  } else if (run->arming.said() && !run->arming.is_root()) {
    awaited.insert(members[run->arming.parent()]);
  } else {
    add_silent(operation, awaited);
  }
  for (const uint32_t member : awaited) note(member, core_.look_for(operation, member));
}

bool Multicasts::progress() {
  if (runs_.empty() && circles_.empty()) return false;
  bool busy = false;
  round_ns_ = now_ns();
  for (size_t i = 0; i < circles_.size(); ++i) {
    const auto circle = circles_[i].lock();
    if (circle == nullptr || circle->group == nullptr) continue;
    hearing_ = circle.get();
    busy |= circle->group->progress(round_ns_, *this);
    hearing_ = nullptr;
  }
  for (auto it = runs_.begin(); it != runs_.end();) {
    Run& run = *(it++)->second;  // pump() may end it
    busy |= write_all(run);
    busy |= probe(run, round_ns_);
    busy |= send(run);
    const bool waits = run.task && run.by_multicast && !run.task->complete();
    if (waits && round_ns_ >= run.since_ns + run.quiet_ns) {
      run.since_ns = round_ns_;
      run.task->quiet();
    }
    busy |= pump(run);
  }
  return busy;
}

uint64_t Multicasts::wait_ns() {
  uint64_t wait = UINT64_MAX;
  if (runs_.empty() && circles_.empty()) return wait;
  const uint64_t now = now_ns();
  const auto until = [&](uint64_t then) { wait = std::min(wait, then > now ? then - now : 0); };
  for (const auto& entry : circles_) {
    const auto circle = entry.lock();
    if (circle != nullptr && circle->group != nullptr) wait = std::min(wait, circle->group->wait_ns(now));
  }
  for (const auto& [id, run] : runs_) {
    if (run->task && run->by_multicast && !run->task->complete()) until(run->since_ns + run->quiet_ns);
    if (run->probing_since_ns != 0 && !run->task) until(now + kProbeLookNs);
    const fabric::Group* const group = group_of(*run);
    if (run->sending && run->reads == 0 && (group == nullptr || group->idle())) until(now);
  }
  return wait;
}

}  // namespace offpath::engine
