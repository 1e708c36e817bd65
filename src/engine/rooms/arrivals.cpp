// SPDX-License-Identifier: BSD-3-Clause
#include "engine/rooms/arrivals.hpp"

#include "engine/rooms/peers.hpp"

#include <algorithm>
#include <numeric>

namespace offpath::engine {

using graph::Ends;
using wire::Channel;
using wire::Kind;
using wire::Message;

namespace {
constexpr size_t kAskedAtATime = 64;  // members: many may wait for one late one
}

Gathering::Gathering(const TeamSpec& spec, uint32_t radix)
    : roster(spec.members),
      own(roster.worker_of(spec.rank)),
      by_worker(roster.size()),
      begins(workers() + 1),
      words(plan(workers(), radix)) {
  for (const uint32_t worker : roster.worker_of()) ++begins[worker + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  std::vector<uint32_t> next = begins;
  for (uint32_t rank = 0; rank < roster.size(); ++rank) by_worker[next[roster.worker_of(rank)]++] = rank;
}

std::vector<Gathering::Word> Gathering::plan(uint32_t workers, uint64_t radix) {
  std::vector<Word> words;
  for (uint64_t stride = 1; stride < workers; stride *= radix) {
    for (uint64_t far = stride; far < std::min<uint64_t>(stride * radix, workers); far += stride)
      words.push_back({static_cast<uint32_t>(far), static_cast<uint32_t>(std::min(stride, workers - far))});
  }
  return words;
}

bool Gathering::has_arrived(const Count& count, uint32_t worker) const {
  return count.heard[worker] || std::ranges::all_of(members(worker), [&](uint32_t rank) {
           return count.arrived[rank] || lost.contains(rank);
         });
}

uint32_t Gathering::distance(uint32_t worker) const { return (own + workers() - worker) % workers(); }

void Gathering::hear(Count& count, uint32_t worker, uint32_t of) const {
  for (uint32_t each = distance(worker); of > 0; ++each, --of) count.heard[before(each)] = true;
}

Gathering::Count& Gathering::count_of(uint64_t number) {
  Count& count = open[number];
  count.arrived.resize(roster.size());
  count.heard.resize(workers());
  return count;
}

bool Gathering::lose(uint32_t rank) {
  if (!lost.insert(rank).second) return false;
  words = plan(workers(), std::max<uint64_t>(workers(), 2));
  for (auto& [number, count] : open) count.said = 0;
  return true;
}

std::shared_ptr<Gathering> Arrivals::gathering_of(Team& team) {
  if (team.gathering != nullptr) return team.gathering;
  std::erase_if(gatherings_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Gathering>& known = gatherings_[team.spec.id];
  team.gathering = known.lock();
  if (team.gathering == nullptr)
    known = team.gathering = std::make_shared<Gathering>(team.spec, config_.arrivals_radix);
  return team.gathering;
}

void Arrivals::leave(Team& team) {
  const std::shared_ptr<Gathering> gathering = std::move(team.gathering);
  if (gathering == nullptr) return;
  for (const uint32_t rank : gathering->members(gathering->own)) {
    if (const auto member = core_.find_team(team.spec.id, rank)) member->gathering = gathering;
  }
}

void Arrivals::begin(Operation& operation) {
  operation.awaits_arrivals = true;
  if (operation.graph.ends == Ends::together) gathering_of(*operation.team);
  if (operation.graph.ends != Ends::by_pairs) return;
  for (const Export& block : operation.graph.exports) {
    if (block.peer != operation.team->spec.rank) operation.takers.insert(block.peer);
  }
  operation.awaits_arrivals = !operation.takers.empty();
}

void Arrivals::arrive(Operation& operation) {
  Team& team = *operation.team;
  const TeamSpec& spec = team.spec;
  const bool complete = operation.status.ok() && operation.shortfall().ok();
  if (complete) core_.observer.on_arrived(spec.client, operation.context);
  if (operation.graph.ends == Ends::together) return count(operation, spec.rank);
  std::vector<uint8_t> waiting(spec.members.size());
  add_waiting(operation, waiting);
  for (uint32_t rank = 0; rank < waiting.size(); ++rank) {
    if (waiting[rank] == 0 || team.lost[rank] != 0) continue;
    peers_.send(team, rank,
                about(Kind::arrived, team, Channel::collectives, operation.key.number, spec.rank, rank,
                      static_cast<uint32_t>(Ends::by_pairs)));
  }
}

void Arrivals::count(Operation& operation, uint32_t rank) {
  Gathering& gathering = *operation.team->gathering;
  gathering.count_of(operation.key.number).arrived[rank] = true;
  look_at(gathering, *operation.team, operation.key.number);
}

void Arrivals::look_at(Gathering& gathering, Team& team, uint64_t number) {
  Gathering::Count& count = gathering.count_of(number);
  while (count.reach < gathering.workers() && gathering.has_arrived(count, gathering.before(count.reach)))
    ++count.reach;
  for (; count.said < gathering.words.size(); ++count.said) {
    const Gathering::Word& word = gathering.words[count.said];
    if (word.count > count.reach) break;
    const uint32_t to = gathering.speaker(gathering.ahead(word.ahead));
    Message message = about(Kind::arrived, team, Channel::collectives, number, gathering.speaker(gathering.own), to,
                            static_cast<uint32_t>(Ends::together));
    message.count = word.count;
    peers_.send(team, to, message);
  }
  if (count.reach < gathering.workers()) return;
  gathering.open.erase(number);
  for (const uint32_t rank : gathering.members(gathering.own)) {
    const auto member = core_.find_team(team.spec.id, rank);
    if (member == nullptr) continue;
    const auto found = member->operations.find({.number = number});
    if (found != member->operations.end()) release(*found->second);
  }
}

void Arrivals::release(Operation& operation) {
  operation.awaits_arrivals = false;
  if (operation.arrived) runner_.end_if_done(operation);
}

void Arrivals::note_arrived(Operation& operation, uint32_t rank) {
  if (operation.takers.erase(rank) != 0 && operation.takers.empty()) release(operation);
  const bool counts = operation.graph.ends == Ends::together && operation.awaits_arrivals && operation.arrived;
  if (counts) count(operation, rank);
}

void Arrivals::add_silent(const Operation& operation, std::set<uint32_t>& ranks) const {
  if (!operation.arrived || !operation.awaits_arrivals) return;
  ranks.insert(operation.takers.begin(), operation.takers.end());
  if (operation.graph.ends != Ends::together) return;
  const Gathering& gathering = *operation.team->gathering;
  const auto found = gathering.open.find(operation.key.number);
  if (found == gathering.open.end()) return;
  const Gathering::Count& count = found->second;
  size_t asked = 0;  // the nearest first: others may have said it to those
  for (uint32_t each = count.reach; each > 0 && each < gathering.workers() && asked < kAskedAtATime; ++each) {
    const uint32_t worker = gathering.before(each);
    if (gathering.has_arrived(count, worker)) continue;
    for (const uint32_t rank : gathering.members(worker)) asked += !count.arrived[rank] && ranks.insert(rank).second;
  }
}

void Arrivals::on_message(const Message& message, fabric::Bytes) {
  const bool known_tag =
      message.tag == static_cast<uint32_t>(Ends::together) || message.tag == static_cast<uint32_t>(Ends::by_pairs);
  if (!known_tag || message.channel != Channel::collectives) return core_.refuse_message("an arrival that cannot be");
  const auto team = core_.find_team(message.team, message.to);
  if (message.tag == static_cast<uint32_t>(Ends::by_pairs)) {
    if (team == nullptr) return;  // it has gone, and waits for nothing
    const auto found = team->operations.find({.number = message.number});
    const bool expected = found != team->operations.end() && found->second->graph.ends == Ends::by_pairs;
    if (expected) note_arrived(*found->second, message.from);
    return;
  }
  const auto known = gatherings_.find(message.team);
  std::shared_ptr<Gathering> gathering = known == gatherings_.end() ? nullptr : known->second.lock();
  if (gathering == nullptr && team == nullptr) return peers_.handle_absent({message.team, message.to}, message, {});
  if (gathering == nullptr) gathering = gathering_of(*team);
  const bool to_us = message.to == gathering->speaker(gathering->own);
  const bool from_another = gathering->is_speaker(message.from) && message.from != message.to;
  const uint32_t worker = from_another ? gathering->roster.worker_of(message.from) : gathering->own;
  const bool not_of_us = message.count > 0 && message.count <= gathering->workers() - gathering->distance(worker);
  const bool possible = from_another && to_us && not_of_us && message.number < wire::kNoOperation;
  const bool has_room = gathering->open.size() < config_.parked_limit || gathering->open.contains(message.number);
  if (!possible || !has_room) return core_.refuse_message("word of an arrival that cannot be");
  if (team != nullptr) team->exchange.note_present(message.from);
  if (is_past(*gathering, message)) return;
  gathering->hear(gathering->count_of(message.number), worker, message.count);
  for (const uint32_t rank : gathering->members(gathering->own)) {
    if (const auto member = core_.find_team(message.team, rank)) return look_at(*gathering, *member, message.number);
  }
}

// Whoever says so waits for the same word from here.
void Arrivals::on_absent(Team& team, const Message& message) {
  if (message.from < team.spec.members.size()) peers_.say_abandoned(team, message.from);
}

// Nobody here will count it any more: the operation has ended for all, or was given up.
bool Arrivals::is_past(const Gathering& gathering, const Message& message) const {
  if (gathering.open.contains(message.number)) return false;
  return std::ranges::all_of(gathering.members(gathering.own), [&](uint32_t rank) {
    const auto member = core_.find_team(message.team, rank);
    return member != nullptr && message.number < member->next_sequence &&
           !member->operations.contains({.number = message.number});
  });
}

void Arrivals::on_lost(Team& team, uint32_t rank) {
  // Where only its service is gone, the member may need what others have still; their operations end by themselves. Members
  // here that have not heard of it would be told that all is well.
  if (team.lost[rank] != static_cast<uint8_t>(Loss::process)) return;
  for (const auto& [key, operation] : team.operations) note_arrived(*operation, rank);
  const std::shared_ptr<Gathering> gathering = team.gathering;
  if (gathering == nullptr || !gathering->lose(rank)) return;
  std::vector<uint64_t> numbers;
  for (const auto& [number, count] : gathering->open) numbers.push_back(number);
  for (const uint64_t number : numbers) look_at(*gathering, team, number);
}

void Arrivals::add_awaited(const Operation& operation, std::vector<uint8_t>& ranks) {
  if (!operation.arrived || !operation.awaits_arrivals) return;
  for (const uint32_t taker : operation.takers) ranks[taker] = 1;
  const Gathering* const gathering = operation.team->gathering.get();
  if (operation.graph.ends != Ends::together || gathering == nullptr) return;
  const auto count = gathering->open.find(operation.key.number);
  if (count == gathering->open.end()) return;
  for (const Gathering::Word& word : gathering->words) {
    const uint32_t worker = gathering->before(word.ahead);
    if (!count->second.heard[worker]) ranks[gathering->speaker(worker)] = 1;
  }
}

void Arrivals::add_waits(const Operation& operation, const Note& note) const {
  std::vector<uint8_t> ranks(operation.team->spec.members.size());
  add_awaited(operation, ranks);
  for (uint32_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank] != 0) note(rank, Waits::takes);
  }
}

void Arrivals::add_waiting(const Operation& operation, std::vector<uint8_t>& ranks) {
  if (operation.graph.ends == Ends::together) std::fill(ranks.begin(), ranks.end(), 1);
  if (operation.graph.ends != Ends::by_pairs) return;
  for (uint32_t i = 0; i < operation.own_steps; ++i) {
    const Step& step = operation.graph.steps[i];
    if (step.kind == StepKind::pull && step.peer != operation.team->spec.rank) ranks[step.peer] = 1;
  }
}

}  // namespace offpath::engine
