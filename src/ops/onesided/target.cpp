// SPDX-License-Identifier: BSD-3-Clause
#include "ops/onesided/target.hpp"

#include "ops/onesided/perform.hpp"

#include <utility>

namespace offpath::ops::onesided {

using base::Status;
using graph::Answer;
using graph::ClientId;
using graph::Graph;
using graph::RequestId;

namespace {

using Ull = unsigned long long;  // for printf

Answer no_window() {
  return Answer::reply(
      Status::error(OFFPATH_ERR_RANGE, "a one-sided operation on a window that is not open. Open it first"));
}

Answer given_up() {
  return Answer::reply(Status::error(OFFPATH_ERR_PEER_LOST,
                                     "the target serves its part of the window itself, as a "
                                     "service was lost"));
}

Status unknown_window(uint64_t window) {
  return Status::error(OFFPATH_ERR_ARGUMENT, "window %llu is not open, or its memory was given when it was opened",
                       static_cast<Ull>(window));
}

Status bad_region(uint64_t base, uint64_t bytes) {
  return Status::error(OFFPATH_ERR_ARGUMENT,
                       "%llu bytes at %p are no memory to open (empty, beyond the last address, or open already)",
                       static_cast<Ull>(bytes), reinterpret_cast<void*>(base));
}

}  // namespace

size_t Target::KeyHash::operator()(const Key& key) const {
  uint64_t hash = key.client * 0x9E3779B97F4A7C15;
  hash = (hash ^ key.team) * 0x9E3779B97F4A7C15;
  return (hash ^ key.window ^ hash >> 32) * 0x9E3779B97F4A7C15;
}

// ---- windows ----------------------------------------------------------------------------------------------------

Status Target::open(ClientId client, uint64_t team, uint64_t window, uint64_t base, uint64_t bytes, bool dynamic,
                    std::shared_ptr<remote::Journal> journal, bool keeps) {
  if (window == UINT64_MAX)  // where requests that are no one-sided operations say so
    return Status::error(OFFPATH_ERR_ARGUMENT, "no window can have the id 2^64 - 1. Give it another one");
  auto opened = std::make_shared<Window>();
  opened->dynamic = dynamic;
  opened->base = dynamic ? 0 : base;
  opened->journal = std::move(journal);
  opened->keeps = keeps;
  if (bytes > 0 && (dynamic || !opened->regions.add(base, bytes))) return bad_region(base, bytes);
  if (windows_.try_emplace({client, team, window}, std::move(opened)).second) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT, "window %llu is open already. Give each window of a team its own id",
                       static_cast<Ull>(window));
}

Status Target::close(ClientId client, uint64_t team, uint64_t id, Released released) {
  const auto found = windows_.find({client, team, id});
  if (found == windows_.end()) return unknown_window(id);
  const std::shared_ptr<Window> window = found->second;
  windows_.erase(found);
  refuse_waiting(*window);
  window->regions.remove_all(std::move(released));
  return {};
}

Status Target::give_up(ClientId client, uint64_t team, uint64_t id, Released released) {
  const auto found = windows_.find({client, team, id});
  if (found == windows_.end()) return unknown_window(id);
  const std::shared_ptr<Window> window = found->second;
  window->given_up = true;
  refuse_waiting(*window);
  window->regions.remove_all(std::move(released));
  return {};
}

void Target::refuse_waiting(Window& window) {
  const Status status = (window.given_up ? given_up() : no_window()).status;
  for (const Asked& asked : std::exchange(window.waiting, {})) answer_(asked.request, Answer::reply(status));
  for (const RequestId request : window.locks.give_up()) answer_(request, Answer::reply(status));
}

Target::Window* Target::find_dynamic(const Key& key) {
  const auto found = windows_.find(key);
  return found != windows_.end() && found->second->dynamic ? found->second.get() : nullptr;
}

Status Target::attach(ClientId client, uint64_t team, uint64_t id, uint64_t base, uint64_t bytes) {
  Window* window = find_dynamic({client, team, id});
  if (window == nullptr) return unknown_window(id);
  return window->regions.add(base, bytes) ? Status() : bad_region(base, bytes);
}

Status Target::detach(ClientId client, uint64_t team, uint64_t id, uint64_t base, Released released) {
  Window* window = find_dynamic({client, team, id});
  if (window == nullptr) return unknown_window(id);
  if (window->regions.remove(base, std::move(released))) return {};
  return Status::error(OFFPATH_ERR_ARGUMENT, "no memory was attached at %p", reinterpret_cast<void*>(base));
}

void Target::remove_client(ClientId client) {
  std::erase_if(windows_, [&](const auto& entry) { return entry.first.client == client; });
  std::erase_if(working_, [&](const auto& entry) { return entry.second.client == client; });
}

void Target::lose_member(ClientId client, uint64_t team, uint32_t rank, bool lives) {
  std::vector<std::shared_ptr<Window>> affected;  // answers may lead to anything
  for (const auto& [key, window] : windows_) {
    if (key.client == client && key.team == team) affected.push_back(window);
  }
  for (const auto& window : affected) {
    window->given_up |= lives && window->keeps;
    if (window->given_up) {
      refuse_waiting(*window);
    } else {
      window->locks.forget(rank);
      grant_locks(*window);
    }
  }
}

// ---- requests ---------------------------------------------------------------------------------------------------

Answer Target::on_request(ClientId client, uint64_t team, uint32_t from, RequestId request,
                          const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) {
  auto decoded = remote::decode(body);
  if (!decoded.ok()) return Answer::reply(decoded.status());
  Wanted& wanted = decoded->wanted;
  const auto found = windows_.find({client, team, wanted.window});
  if (found == windows_.end()) return no_window();
  const std::shared_ptr<Window> window = found->second;
  if (window->given_up) return given_up();
  if (locks(wanted.kind)) return lock(*window, from, request, wanted.kind);
  Asked asked{request, from, std::move(wanted), decoded->data, memory};
  if (!accumulates(asked.wanted.kind) || (!window->lane_busy && window->waiting.empty())) {
    return begin(client, window, std::move(asked));
  }
  asked.keep();
  window->waiting.push_back(std::move(asked));
  return Answer::later();
}

Answer Target::lock(Window& window, uint32_t from, RequestId request, offpath_remote_kind_t kind) {
  if (kind == OFFPATH_UNLOCK) {
    if (!window.locks.unlock(from)) {
      return Answer::reply(Status::error(OFFPATH_ERR_ARGUMENT, "member %u unlocks what it has not locked", from));
    }
    grant_locks(window);
    return Answer::reply({});
  }
  switch (window.locks.lock(from, kind == OFFPATH_LOCK_EXCLUSIVE, request)) {
    case Locks::Outcome::granted:
      return Answer::reply({});
    case Locks::Outcome::waits:
      return Answer::later();
    case Locks::Outcome::refused:
      break;
  }
  return Answer::reply(Status::error(OFFPATH_ERR_ARGUMENT, "member %u locks twice (it would wait for itself)", from));
}

class Target::Short : public Perform {
 public:
  Short(Target& target, Working working, Asked asked, uint64_t at)
      : Perform(std::move(asked.wanted), asked.data, asked.memory, at),
        target_(target),
        working_(std::move(working)),
        data_(std::move(asked.kept)) {}
  void on_ended() override { target_.end(working_.client, working_, {}); }

 private:
  Target& target_;
  Working working_;
  std::vector<uint8_t> data_;
};

void Target::Asked::keep() {
  if (kept.empty()) kept.assign(data.begin(), data.end());
  data = kept;
}

// The place is looked up when it is used: what waited for the lane may find its memory closed.
Answer Target::begin(ClientId client, const std::shared_ptr<Window>& window, Asked asked) {
  const Wanted& wanted = asked.wanted;
  uint64_t address = 0;
  const Regions::Found regions = window->regions.find(wanted, window->base, address);
  if (regions.empty() && wanted.bytes > 0) {
    return Answer::reply(Status::error(
        OFFPATH_ERR_RANGE, "%llu bytes at offset %llu do not lie in the target's window. Check offset and length",
        static_cast<Ull>(wanted.bytes), static_cast<Ull>(wanted.offset)));
  }
  if (wanted.bytes == 0) return Answer::reply({});
  remote::Journal* const journal = note_begin(*window, asked);
  if (is_short(wanted) && asked.memory->prompt()) {  // at once, so nothing comes in between
    Perform update(std::move(asked.wanted), asked.data, asked.memory, address, journal);
    Answer answer = graph::carry_out(update);
    if (journal != nullptr && answer.status.ok()) journal->end();
    return answer;
  }
  Working working{client, window, {}, accumulates(wanted.kind), signals(wanted.kind), journal};
  window->lane_busy |= working.in_lane;
  for (const auto& [base, region] : regions) {
    region->hold();
    working.regions.push_back(region);
  }
  if (is_short(wanted)) {
    asked.keep();
    return Answer::apply(std::make_shared<Short>(*this, std::move(working), std::move(asked), address));
  }
  working_[asked.request] = std::move(working);
  Graph graph = expand_target(wanted, asked.from, address);
  if (journal != nullptr) graph.memory = window->journaled;
  return Answer::run(std::move(graph));
}

remote::Journal* Target::note_begin(Window& window, Asked& asked) {
  if (window.journal == nullptr || !accumulates(asked.wanted.kind) || !asked.memory->prompt()) return nullptr;
  if (window.journaled == nullptr) window.journaled = remote::make_journaled(asked.memory, window.journal);
  asked.memory = window.journaled;
  window.journal->begin(asked.from, asked.wanted.number);
  return window.journal.get();
}

void Target::on_answered(ClientId client, uint64_t team, RequestId request, const Status& status) {
  const auto found = working_.find(request);
  if (found == working_.end()) {
    // It still waited for the lane: its origin is lost.
    const auto waited = [&](const Asked& asked) { return asked.request == request; };
    for (auto& [key, window] : windows_) {
      if (key.client == client && key.team == team) std::erase_if(window->waiting, waited);
    }
    return;
  }
  const Working ended = std::move(found->second);
  working_.erase(found);
  if (ended.signals && status.ok()) tell_(client);
  end(client, ended, status);
}

void Target::end(ClientId client, const Working& ended, const Status& status) {
  Window& window = *ended.window;
  const bool well = status.ok();
  if (ended.journal != nullptr && well) ended.journal->end();
  // A part of it is there, and its origin will ask the client how much: nothing atomic may come in between.
  const bool cut = ended.journal != nullptr && !well && ended.journal->is_begun();
  const bool by_loss = status.code() != OFFPATH_ERR_MEMORY_FAULT && status.code() != OFFPATH_ERR_ARGUMENT;
  window.given_up |= cut && by_loss;
  for (const auto& region : ended.regions) region->let_go();
  if (!ended.in_lane) return;
  window.lane_busy = false;
  use_lane(client, ended.window);
}

void Target::use_lane(ClientId client, const std::shared_ptr<Window>& window) {
  while (!window->lane_busy && !window->waiting.empty()) {
    Asked next = std::move(window->waiting.front());
    window->waiting.pop_front();
    const RequestId request = next.request;
    answer_(request, window->given_up ? given_up() : begin(client, window, std::move(next)));
  }
}

void Target::grant_locks(Window& window) {
  for (const RequestId request : window.locks.grant()) answer_(request, Answer::reply({}));
}

}  // namespace offpath::ops::onesided
