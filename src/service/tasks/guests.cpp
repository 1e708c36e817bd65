// SPDX-License-Identifier: BSD-3-Clause
// Tasks of other workers, here: they come, run, and what they have written is collected.
#include "base/clock.hpp"
#include "service/tasks/balancer.hpp"

#include <algorithm>

namespace offpath::service {

using base::Status;
using graph::Answer;
using graph::RequestId;

uint32_t Balancer::coming() const {
  return static_cast<uint32_t>(std::count_if(
      guests_.begin(), guests_.end(), [](const auto& entry) { return entry.second.stage == Guest::Stage::comes; }));
}

uint32_t Balancer::promised(uint64_t now_ns) {
  std::erase_if(promises_, [&](const Promise& one) { return one.count == 0 || now_ns >= one.until_ns; });
  uint32_t count = 0;
  for (const Promise& one : promises_) count += one.count;
  return count;
}

// An ask is answered when there is room, or when it is over: who asked has run by now what it asked for, or asks once more.
bool Balancer::grant(uint64_t now_ns) {
  bool any = false;
  for (auto asker = askers_.begin(); asker != askers_.end();) {
    if (asker->waited_ns(now_ns) < kLongestAskNs && tasks::is_worth_asking(asker->load_at(now_ns))) {
      ++asker;
      continue;
    }
    engine_.answer(asker->request, Answer::reply({}, encode(tasks::Grant{})));
    asker = askers_.erase(asker);
    any = true;
  }
  while (!askers_.empty() && tasks_.is_open() && has_time_()) {
    const tasks::Load own = tasks_.load();
    const Tasks::Guests guests = tasks_.guests_waiting();
    std::vector<tasks::Load> loads;
    for (const Asker& asker : askers_) loads.push_back(asker.load_at(now_ns));
    const size_t chosen = *tasks::choose(loads);
    const uint64_t wait_ns = tasks::wait_for_executor_ns(own, guests.ns);
    const uint32_t room = tasks::room_for_guests(own, guests.count + coming(), promised(now_ns), loads[chosen]);
    const uint32_t count = tasks::share(loads[chosen], own, wait_ns, room);
    if (count == 0) break;
    engine_.answer(askers_[chosen].request, Answer::reply({}, encode(tasks::Grant{count, own.executors, wait_ns})));
    askers_.erase(askers_.begin() + static_cast<std::ptrdiff_t>(chosen));
    promises_.push_back({count, now_ns + tasks::promise_ns(loads[chosen])});
    any = true;
  }
  return any;
}

// Its ranges lie on the board, one after the other; then what it reads is fetched.
Answer Balancer::take_guest(Guest guest, RequestId request, tasks::Moved moved) {
  if (promised(base::clock_ns()) > 0) --promises_.front().count;
  if (!tasks_.is_open())
    return Answer::reply(Status::error(OFFPATH_ERR_STATE, "no executors run here, as no functions are registered"));
  const auto number = tasks_.functions().number_of(std::move(moved.function));
  if (!number.ok()) return Answer::reply(number.status());
  guest.task = std::move(moved.task);
  guest.task.function = number.value();
  const auto give_back = [&] {
    for (const uint64_t place : guest.places) tasks_.room().release(place);
    return Answer::reply(Status::error(OFFPATH_ERR_NO_MEMORY, "there is no room for a task of another node"));
  };
  const auto take = [&](uint64_t bytes, uint64_t& place) {
    const auto reserved = tasks_.room().reserve(bytes);
    if (!reserved) return false;
    place = *reserved;
    guest.places.push_back(place);
    return true;
  };
  if (!take(tasks::kOutcomeBytes, guest.outcome)) return give_back();
  if (moved.argument_bytes > 0 && !take(moved.argument_bytes, guest.argument)) return give_back();
  guest.task.argument.resize(std::max<size_t>(guest.task.argument.size(), moved.argument_bytes));
  graph::Graph graph;
  graph.scratch = tasks_.room().memory();
  graph.interpreted = true;
  graph.shortfall = OFFPATH_ERR_SHORT;
  if (guest.argument != 0)
    graph.pull(guest.from, tasks::kArgumentTag, graph::scratch_place(guest.argument), moved.argument_bytes);
  for (uint32_t i = 0; i < guest.task.ranges.size(); ++i) {
    tasks::RangeRecord& range = guest.task.ranges[i];
    if (!take(range.bytes, range.address)) return give_back();
    if ((range.access & OFFPATH_TASK_IN) != 0 && range.bytes > 0)
      graph.pull(guest.from, i, graph::scratch_place(range.address), range.bytes);
  }
  const uint64_t id = next_++;
  guest_of_[{guest.client, guest.team, guest.from, guest.number}] = id;
  Guest& kept = guests_[id] = std::move(guest);
  if (graph.steps.empty()) {
    host(id, kept);
    return Answer::reply({});
  }
  kept.request = request;
  answering_[request] = id;
  return Answer::run(std::move(graph));
}

void Balancer::host(uint64_t id, Guest& guest) {
  guest.stage = Guest::Stage::runs;
  guest.came_ns = base::clock_ns();
  if (guest.argument != 0) {
    const size_t bytes = guest.task.argument.size();
    const uint8_t* from = tasks_.room().at(guest.argument, bytes);
    std::copy(from, from + bytes, guest.task.argument.begin());
  }
  tasks_.host(id, guest.task);
}

Answer Balancer::collect(Guest& guest, uint64_t id, RequestId request) {
  if (guest.stage == Guest::Stage::done) return results_of(guest, id, request);
  if (guest.stage == Guest::Stage::failed || guest.stage == Guest::Stage::leaves || guest.unwanted) {
    if (guest.stage == Guest::Stage::failed) forget(id);
    return Answer::reply(Status::error(OFFPATH_ERR_TASK, "the task has failed here"));
  }
  if (guest.collector != 0)  // that one would be answered no more
    return Answer::reply(Status::error(OFFPATH_ERR_STATE, "the task is being collected already"));
  guest.collector = request;
  answering_[request] = id;
  return Answer::later();
}

Answer Balancer::results_of(Guest& guest, uint64_t id, RequestId request) {
  guest.stage = Guest::Stage::leaves;
  guest.collector = request;
  answering_[request] = id;
  graph::Graph graph;
  graph.scratch = tasks_.room().memory();
  graph.interpreted = true;
  graph.offer(guest.from, tasks::kOutcomeTag, graph::scratch_place(guest.outcome), tasks::kOutcomeBytes);
  for (uint32_t i = 0; i < guest.task.ranges.size(); ++i) {
    const tasks::RangeRecord& range = guest.task.ranges[i];
    if ((range.access & OFFPATH_TASK_OUT) != 0 && range.bytes > 0)
      graph.offer(guest.from, i, graph::scratch_place(range.address), range.bytes);
  }
  return Answer::run(std::move(graph));
}

void Balancer::on_guest_ended(uint64_t id, const TaskEnd& end) {
  const auto found = guests_.find(id);
  if (found == guests_.end()) return;
  Guest& guest = found->second;
  if (guest.unwanted) return forget(id);
  guest.stage = end.status.ok() ? Guest::Stage::done : Guest::Stage::failed;
  if (end.status.ok()) {
    const uint64_t here_ns = base::clock_ns() - guest.came_ns;
    encode(tasks::Outcome{end.run_ns, here_ns - std::min(here_ns, end.run_ns)},
           std::span<uint8_t, tasks::kOutcomeBytes>(tasks_.room().at(guest.outcome, tasks::kOutcomeBytes),
                                                    tasks::kOutcomeBytes));
  }
  const RequestId request = std::exchange(guest.collector, 0);
  if (request == 0) return;
  if (end.status.ok()) {
    engine_.answer(request, results_of(guest, id, request));
  } else {
    answering_.erase(request);
    engine_.answer(request, Answer::reply(end.status));
    forget(id);
  }
}

// Nobody wants it any more. What is being fetched for it, or from it, ends first.
void Balancer::drop(uint64_t id) {
  Guest& guest = guests_.at(id);
  guest.unwanted = true;
  if (guest.collector != 0 && guest.stage == Guest::Stage::runs) {
    answering_.erase(guest.collector);
    engine_.answer(std::exchange(guest.collector, 0),
                   Answer::reply(Status::error(OFFPATH_ERR_CANCELLED, "the task was dropped")));
  }
  if (guest.stage == Guest::Stage::runs) return tasks_.cancel_guest(id);  // it may be forgotten by this
  if (guest.stage == Guest::Stage::comes && guest.request != 0) return;
  if (guest.stage == Guest::Stage::leaves && guest.collector != 0) return;
  forget(id);
}

void Balancer::forget(uint64_t id) {
  const Guest guest = std::move(guests_.extract(id).mapped());
  guest_of_.erase({guest.client, guest.team, guest.from, guest.number});
  for (const uint64_t place : guest.places) tasks_.room().release(place);
}

void Balancer::on_answered(engine::ClientId client, uint64_t team, RequestId request, const Status& status) {
  const auto asker =
      std::find_if(askers_.begin(), askers_.end(), [&](const Asker& one) { return one.request == request; });
  if (asker != askers_.end()) {
    askers_.erase(asker);
    return;
  }
  const auto found = answering_.find(request);
  if (found == answering_.end()) return others_.on_answered(client, team, request, status);
  const uint64_t id = found->second;
  answering_.erase(found);
  const auto it = guests_.find(id);
  if (it == guests_.end()) return;
  Guest& guest = it->second;
  if (guest.request == request) {  // what it reads has come, or will not
    guest.request = 0;
    if (guest.unwanted || !status.ok()) {
      const RequestId collector = std::exchange(guest.collector, 0);
      if (collector != 0) {
        answering_.erase(collector);
        engine_.answer(collector, Answer::reply(Status::error(OFFPATH_ERR_STATE, "the task did not come")));
      }
      return forget(id);
    }
    return host(id, guest);
  }
  guest.collector = 0;
  if (guest.stage == Guest::Stage::leaves) return forget(id);
  drop(id);  // its home is lost
}

}  // namespace offpath::service
