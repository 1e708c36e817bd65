// SPDX-License-Identifier: BSD-3-Clause
// Tasks of this worker, elsewhere: who is asked, who gets how many, and how they come back.
#include "base/clock.hpp"
#include "base/log.hpp"
#include "service/tasks/balancer.hpp"

#include <algorithm>

namespace offpath::service {

using base::Status;
using graph::Graph;

namespace {

constexpr uint64_t kLookNs = 200000;         // between looks at what there is to do
constexpr uint64_t kAskAgainNs = 1000000;    // who had no room is not asked at once again,
constexpr uint64_t kLastPauseNs = 16000000;  // and the less often, the more often that was so
constexpr uint64_t kFirstTripNs = 1000000;   // beside the task's cost, until it is measured
constexpr uint64_t kCollects = 1;            // of a context: collects, else brings
constexpr uint64_t kForcedNs = 1000000000;   // what goes whether it pays or not has time
constexpr uint32_t kMostAway = 1024;

graph::Place place_at(uint64_t place) { return graph::scratch_place(place); }

}  // namespace

// Its own client's way to a worker: the engine reads that client's memory.
const Balancer::Route* Balancer::route_to(const Peer& peer, engine::ClientId client) const {
  const auto found = std::find_if(routes_.begin(), routes_.end(),
                                  [&](const Route& route) { return route.peer == &peer && route.client == client; });
  return found == routes_.end() ? nullptr : &*found;
}

bool Balancer::look_at_home(uint64_t now_ns) {
  if (routes_.empty() && away_.empty()) return false;
  const bool sent = mode_ == Mode::always && send_all();
  if (now_ns < next_look_ns_) return sent;
  next_look_ns_ = now_ns + kLookNs;
  if (!tasks_.any_waits() && away_.empty()) return sent;
  const tasks::Load load = tasks_.load();
  const bool asked = mode_ == Mode::on && ask(now_ns, load);
  const bool taken_back =
      take_back_overdue(now_ns, load.running < load.executors && (load.ready == 0 || load.running == 0));
  return sent | asked | taken_back;
}

// In turn to whoever there is.
bool Balancer::send_all() {
  bool any = false;
  for (size_t turn = 0; tasks_.any_waits() && turn < routes_.size() && away_.size() < kMostAway;) {
    Peer& peer = *routes_[next_ % routes_.size()].peer;
    const bool went = !peer.silent && send_one(peer, [](const tasks::Task&) { return kForcedNs; });
    any |= went;
    turn = went ? 0 : turn + 1;
    if (!went) ++next_;
  }
  return any;
}

bool Balancer::ask(uint64_t now_ns, const tasks::Load& load) {
  bool any = false;
  for (const Route& route : routes_) {
    Peer& peer = *route.peer;
    tasks::Load said = load;
    said.trip_ns = peer.trip.ns(kFirstTripNs);
    said.there_ns = tasks_.mean_elsewhere_ns(peer.runs);
    if (peer.asked || peer.silent || now_ns < peer.ask_again_ns || !tasks::is_worth_asking(said)) continue;
    const auto place = tasks_.room().reserve(tasks::kGrantBytes);
    if (!place) break;
    peer.asked = true;
    const uint64_t number = next_++;
    questions_[number] = {route.client, &peer, *place};
    graph::Request request;
    request.target = route.rank;
    request.body = tasks::encode_ask(said);
    request.graph.scratch = tasks_.room().memory();
    request.graph.interpreted = true;
    request.reply = place_at(*place);
    request.reply_bytes = tasks::kGrantBytes;
    engine_.post_request(route.handle, std::move(request), kContext | number << 1);
    any = true;
  }
  return any;
}

// Inside the engine, so what follows from it is done in the next round.
void Balancer::take_grant(const Question& question, const Status& status) {
  Peer& peer = *question.peer;
  peer.asked = false;
  peer.pause_ns = std::clamp(2 * peer.pause_ns, kAskAgainNs, kLastPauseNs);
  peer.ask_again_ns = base::clock_ns() + peer.pause_ns;
  const uint8_t* said = tasks_.room().at(question.place, tasks::kGrantBytes);
  const tasks::Grant grant =
      status.ok() ? tasks::decode_grant(std::span<const uint8_t, tasks::kGrantBytes>(said, tasks::kGrantBytes))
                  : tasks::Grant{};
  tasks_.room().release(question.place);
  if (!status.ok()) {
    peer.silent = true;
    base::log_write(base::LogLevel::info, "another worker takes no tasks: %s", status.text());
  } else if (grant.count > 0) {
    peer.pause_ns = peer.ask_again_ns = 0;
    granted_.emplace_back(&peer, grant);
  }
}

// Each that ends sooner there than here.
void Balancer::send_granted() {
  for (const auto& [peer, grant] : std::exchange(granted_, {})) {
    for (uint32_t i = 0; i < grant.count && away_.size() < kMostAway; ++i) {
      const tasks::Load load = tasks_.load();
      if (load.ready == 0) break;
      const uint64_t cost_ns = load.ready_ns / load.ready;
      const auto end_there = [&, to = peer, granted = grant](const tasks::Task& task) -> std::optional<uint64_t> {
        const uint64_t there_ns =
            end_there_ns(granted, i, to->trip.ns(kFirstTripNs), to->runs[task.function].ns(cost_ns));
        if (!tasks::is_sooner_there(load, there_ns)) return std::nullopt;
        return there_ns;
      };
      if (send_one(*peer, end_there)) continue;
      peer->trip.fade();
      break;
    }
  }
  next_look_ns_ = 0;
}

bool Balancer::send_one(Peer& peer, const EndThere& end_there) {
  const uint64_t number = next_++;
  std::vector<uint8_t> body;
  std::optional<uint64_t> expected_ns;
  const auto may_go = [&](engine::ClientId client, const tasks::Task& task, const tasks::Function& function) {
    if (route_to(peer, client) == nullptr || peer.refuses.contains(task.function)) return false;
    expected_ns = end_there(task);
    if (!expected_ns) return false;
    body = encode_moved(number, function, task, graph::kMaxRequestBytes);
    return !body.empty();
  };
  const auto given = tasks_.give(number, may_go);
  if (!given) return false;
  Away& away = away_[number];
  away.function = given->task->function;
  away.route = *route_to(peer, given->client);
  away.times = {base::clock_ns(), *expected_ns, given->cost_ns, given->task->deadline_ns};
  if (!prepare(away, *given->task)) {
    release(away);
    away_.erase(number);
    tasks_.take_back(number, false);
    return false;
  }
  post(number, away, *given->task, std::move(body));
  return true;
}

// Room for what comes back, and for what the engine cannot read in the client.
bool Balancer::prepare(Away& away, const tasks::Task& task) {
  const auto outcome = tasks_.room().reserve(tasks::kOutcomeBytes);
  if (!outcome) return false;
  away.outcome = *outcome;
  if (task.argument.size() > tasks::kInlineArgument) {
    const auto place = tasks_.room().reserve(task.argument.size());
    if (!place) return false;
    away.argument = *place;
    std::copy(task.argument.begin(), task.argument.end(), tasks_.room().at(*place, task.argument.size()));
  }
  for (uint32_t i = 0; i < task.ranges.size(); ++i) {
    if ((task.ranges[i].access & OFFPATH_TASK_OUT) == 0) continue;
    const auto place = tasks_.room().reserve(task.ranges[i].bytes);
    if (!place) return false;
    away.places.push_back({i, *place});
  }
  return true;
}

// Both at once: what is collected is asked for before it is there, so it leaves when it is.
void Balancer::post(uint64_t number, Away& away, const tasks::Task& task, std::vector<uint8_t> body) {
  const uint32_t there = away.route.rank;
  graph::Request brings;
  brings.target = there;
  brings.body = std::move(body);
  brings.graph.scratch = tasks_.room().memory();
  brings.graph.interpreted = true;
  if (away.argument != 0) brings.graph.offer(there, tasks::kArgumentTag, place_at(away.argument), task.argument.size());
  for (uint32_t i = 0; i < task.ranges.size(); ++i) {
    const tasks::RangeRecord& range = task.ranges[i];
    if ((range.access & OFFPATH_TASK_IN) != 0 && range.bytes > 0)
      brings.graph.offer(there, i, graph::client_place(range.address), range.bytes);
  }
  graph::Request collects;
  collects.target = there;
  collects.body = encode_about(tasks::Saying::collect, number);
  collects.graph.scratch = tasks_.room().memory();
  collects.graph.interpreted = true;
  collects.graph.shortfall = OFFPATH_ERR_SHORT;
  collects.graph.pull(there, tasks::kOutcomeTag, place_at(away.outcome), tasks::kOutcomeBytes);
  for (const Room::Piece& piece : away.places) {
    const uint64_t bytes = task.ranges[piece.range].bytes;
    if (bytes > 0) collects.graph.pull(there, piece.range, place_at(piece.place), bytes);
  }
  away.requests = 2;
  const engine::TeamHandle handle = away.route.handle;  // either may end at once
  engine_.post_request(handle, std::move(brings), kContext | number << 1);
  engine_.post_request(handle, std::move(collects), kContext | number << 1 | kCollects);
}

void Balancer::on_finished(uint64_t context, const Status& status) {
  const uint64_t number = (context & ~kContext) >> 1;
  const auto question = questions_.find(number);
  if (question != questions_.end()) {
    const Question answered = question->second;
    questions_.erase(question);
    return take_grant(answered, status);
  }
  if (away_.contains(number)) end_request(number, (context & kCollects) != 0, status);
}

void Balancer::end_request(uint64_t number, bool collects, const Status& status) {
  Away& away = away_.at(number);
  --away.requests;
  Peer& peer = *away.route.peer;
  const uint64_t took_ns = base::clock_ns() - away.times.since_ns;
  if (!status.ok() && !away.over) {
    // Whatever went wrong there, here it goes well, or wrong in the way that it does here.
    away.over = true;
    if (status.code() == OFFPATH_ERR_ARGUMENT || status.code() == OFFPATH_ERR_RANGE) peer.refuses.insert(away.function);
    base::log_write(base::LogLevel::info, "a task that was away is run at home: %s", status.text());
    tasks_.take_back(number, false);
  } else if (collects && status.ok() && !away.over) {
    away.over = true;
    const tasks::Outcome outcome = tasks::decode_outcome(std::span<const uint8_t, tasks::kOutcomeBytes>(
        tasks_.room().at(away.outcome, tasks::kOutcomeBytes), tasks::kOutcomeBytes));
    const uint64_t there_ns = outcome.run_ns + outcome.wait_ns;
    peer.trip.add(took_ns - std::min(took_ns, there_ns));
    peer.runs[away.function].add(outcome.run_ns);
    TaskEnd end;
    end.function = away.function;
    end.run_ns = outcome.run_ns;
    if (tasks_.deliver(number, away.places, end)) away.places.clear();
  }
  if (away.requests > 0) return;
  release(away);
  away_.erase(number);
  next_look_ns_ = 0;
}

void Balancer::release(const Away& away) {
  for (const Room::Piece& piece : away.places) tasks_.room().release(piece);
  if (away.argument != 0) tasks_.room().release(away.argument);
  if (away.outcome != 0) tasks_.room().release(away.outcome);
}

// What is away for too long is begun here, too, and whichever ends first counts.
bool Balancer::take_back_overdue(uint64_t now_ns, bool home_is_idle) {
  bool any = false;
  for (auto& [number, away] : away_) {
    if (away.over || away.begun_here || !tasks::is_overdue(away.times, now_ns, home_is_idle)) continue;
    away.begun_here = tasks_.take_back(number, true);
    if (!away.begun_here) continue;
    away.route.peer->trip.add(now_ns - away.times.since_ns);
    any = true;
  }
  return any;
}

// It was finished here first, or cancelled.
void Balancer::on_over(uint64_t number) {
  const auto found = away_.find(number);
  if (found == away_.end() || found->second.over) return;
  found->second.over = true;
  drops_.emplace_back(found->second.route, number);
}

void Balancer::send_drops() {
  for (const auto& [route, number] : std::exchange(drops_, {})) {
    graph::Request request;
    request.target = route.rank;
    request.body = encode_about(tasks::Saying::drop, number);
    engine_.post_request(route.handle, std::move(request), kContext | uint64_t{0});
  }
}

}  // namespace offpath::service
