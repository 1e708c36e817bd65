// SPDX-License-Identifier: BSD-3-Clause
#include "interpreter.hpp"

namespace offpath::testing {

using graph::Export;
using graph::kNoStep;
using graph::Place;
using graph::Step;
using graph::StepKind;

Location locate(const std::vector<graph::Layout>& layouts, const Place& place, uint64_t index) {
  index += place.offset;
  if (place.layout == graph::kScratch) return {true, place.base + index};
  if (place.layout == graph::kClient) return {false, place.base + index - kClientBase};
  const graph::Layout& layout = layouts[place.layout];
  uint64_t address = place.base + index / layout.size_bytes * static_cast<uint64_t>(layout.extent_bytes);
  index %= layout.size_bytes;
  for (const memory::Range& range : layout.ranges) {
    if (index < range.bytes) {
      address += static_cast<uint64_t>(range.offset) + index;
      break;
    }
    index -= range.bytes;
  }
  return {false, address - kClientBase};
}

Interpreter::Interpreter(std::vector<Machine>& machines, Operator combine, uint64_t seed)
    : machines_(machines), combine_(combine), random_(seed), states_(machines.size()) {
  for (uint32_t member = 0; member < machines_.size(); ++member) {
    Machine& machine = machines_[member];
    State& state = states_[member];
    graph::Graph& graph = machine.graph;
    graph.seal();
    state.scratch.resize(graph.scratch_bytes);
    for (uint8_t& garbage : state.scratch) garbage = static_cast<uint8_t>(random_());
    state.client_claims = {std::vector<uint16_t>(machine.memory.size()), std::vector<uint16_t>(machine.memory.size())};
    state.scratch_claims = {std::vector<uint16_t>(graph.scratch_bytes), std::vector<uint16_t>(graph.scratch_bytes)};
    state.exports_after.resize(graph.steps.size());
    state.available.resize(graph.exports.size());
    state.asked.resize(graph.exports.size());
    state.pulled_by.assign(graph.exports.size(), kNobody);
    state.steps_left = graph.steps.size();
    state.exports_left = graph.exports.size();
  }
}

void Interpreter::post(uint32_t member) {
  const graph::Graph& graph = machines_[member].graph;
  for (uint32_t i = 0; i < graph.exports.size(); ++i) {
    const Export& block = graph.exports[i];
    if (i > 0 && graph.exports[i - 1].peer == block.peer && graph.exports[i - 1].tag == block.tag) {
      problem("two exports of member " + std::to_string(member) + " under one tag");
    }
    if (block.after == kNoStep) {
      offer(member, i);
    } else {
      states_[member].exports_after[block.after].push_back(i);
    }
  }
  for (uint32_t i = 0; i < graph.steps.size(); ++i) {
    if (graph.steps[i].waits == 0) ready_.emplace_back(member, i);
  }
}

std::string Interpreter::run(uint32_t absent) {
  for (uint32_t member = 0; member < machines_.size(); ++member) {
    if (member != absent) late_.push_back(member);
  }
  while (problem_.empty() && (!late_.empty() || !ready_.empty() || !running_.empty())) {
    size_t choice = random_() % (late_.size() + ready_.size() + running_.size());
    if (choice < late_.size()) {
      const uint32_t member = late_[choice];
      late_[choice] = late_.back();
      late_.pop_back();
      post(member);
      continue;
    }
    choice -= late_.size();
    if (choice < ready_.size()) {
      const auto [member, step] = ready_[choice];
      ready_[choice] = ready_.back();
      ready_.pop_back();
      begin(member, step);
      continue;
    }
    Running& running = running_[choice - ready_.size()];
    move(running);
    if (running.done < running.bytes) continue;
    const Running ended = running;
    running = running_.back();
    running_.pop_back();
    finish(ended);
  }
  for (uint32_t member = 0; member < machines_.size(); ++member) {
    if (finished(member)) continue;
    problem("member " + std::to_string(member) + " never ends: " + std::to_string(states_[member].steps_left) +
            " steps and " + std::to_string(states_[member].exports_left) + " exports are left");
  }
  return problem_;
}

void Interpreter::begin(uint32_t member, uint32_t step_index) {
  const Step& step = machines_[member].graph.steps[step_index];
  if (step.kind == StepKind::multicast) return arm(member, step_index);
  if (step.kind != StepKind::pull) {
    running_.push_back({member, step_index, kNobody, step.bytes, 0});
    return claim_step(running_.back(), 1);
  }
  if (step.peer == member) return problem("a pull from itself");
  State& peer = states_[step.peer];
  const graph::Graph& graph = machines_[step.peer].graph;
  const uint32_t index = graph.find_export(member, step.tag);
  if (index == kNoStep) {
    ++empty_pulls_;
    return step_done(member, step_index);
  }
  if (peer.asked[index]) return problem("an export is pulled twice");
  if (graph.exports[index].bytes > step.bytes) return problem("an export is longer than its pull");
  peer.asked[index] = 1;
  short_pulls_ += graph.exports[index].bytes < step.bytes;
  if (peer.available[index]) {
    transfer(member, step_index, index);
  } else {
    peer.pulled_by[index] = step_index;
  }
}

// All parts go to all when the last node has come to that step.
void Interpreter::arm(uint32_t member, uint32_t step_index) {
  const auto& members = machines_[member].graph.steps[step_index].multicast->members;
  armed_.emplace_back(member, step_index);
  if (armed_.size() < members.size()) return;
  const size_t first = running_.size();
  for (const auto& [node, step] : armed_) running_.push_back({node, step, kNobody, 0, 0});
  armed_.clear();
  for (size_t i = first; i < running_.size(); ++i) claim_step(running_[i], 1);
  for (size_t i = first; i < running_.size(); ++i) {
    const uint32_t to = running_[i].member;
    const graph::Multicast& target = *machines_[to].graph.steps[running_[i].step].multicast;
    for (size_t j = first; j < running_.size(); ++j) {
      const uint32_t from = running_[j].member;
      const graph::Multicast& source = *machines_[from].graph.steps[running_[j].step].multicast;
      if (from == to) continue;
      if (source.members != members) return problem("members of a multicast do not agree");
      const auto& pieces = source.parts[source.own];
      if (pieces.size() != target.parts[source.own].size()) return problem("a part has other pieces elsewhere");
      for (size_t k = 0; k < pieces.size(); ++k) {
        const auto& into = target.parts[source.own][k];
        if (into.bytes != pieces[k].bytes) return problem("a piece has another length elsewhere");
        for (uint64_t at = 0; at < into.bytes; ++at) byte(to, into.place, at) = byte(from, pieces[k].place, at);
        wire_bytes_[machines_[to].topology.node_of(to)] += into.bytes;
      }
    }
  }
}

void Interpreter::transfer(uint32_t member, uint32_t step_index, uint32_t export_index) {
  const uint32_t peer = machines_[member].graph.steps[step_index].peer;
  const uint64_t bytes = machines_[peer].graph.exports[export_index].bytes;
  const auto& node_of = machines_[member].topology.nodes_there->node_of;
  if (node_of[member] != node_of[peer]) wire_bytes_[node_of[member]] += bytes;
  running_.push_back({member, step_index, export_index, bytes, 0});
  claim_step(running_.back(), 1);
}

void Interpreter::move(Running& running) {
  const Step& step = machines_[running.member].graph.steps[running.step];
  const uint64_t elements = 1 + random_() % 4;
  if (step.kind == StepKind::reduce) {
    if (running.bytes % kElementBytes != 0) return problem("a reduction cuts an element");
    for (uint64_t i = 0; i < elements && running.done < running.bytes; ++i, running.done += kElementBytes) {
      const uint64_t result = combine_(element(running.member, step.source, running.done),
                                       element(running.member, step.operand, running.done));
      for (uint64_t j = 0; j < kElementBytes; ++j) {
        byte(running.member, step.target, running.done + j) = static_cast<uint8_t>(result >> (8 * j));
      }
    }
    return;
  }
  const bool pulls = step.kind == StepKind::pull;
  const uint32_t from = pulls ? step.peer : running.member;
  const Place source = pulls ? machines_[from].graph.exports[running.export_index].place : step.source;
  for (uint64_t i = 0; i < 8 * elements && running.done < running.bytes; ++i, ++running.done) {
    byte(running.member, step.target, running.done) = byte(from, source, running.done);
  }
}

void Interpreter::finish(const Running& running) {
  claim_step(running, -1);
  if (running.export_index != kNobody) {
    const uint32_t peer = machines_[running.member].graph.steps[running.step].peer;
    const Export& block = machines_[peer].graph.exports[running.export_index];
    read(peer, block.place, block.bytes, -1, "export");
    --states_[peer].exports_left;
    release(peer, block.next);
  }
  step_done(running.member, running.step);
}

void Interpreter::step_done(uint32_t member, uint32_t step) {
  --states_[member].steps_left;
  release(member, machines_[member].graph.steps[step].next);
  for (const uint32_t index : states_[member].exports_after[step]) offer(member, index);
}

void Interpreter::release(uint32_t member, const std::vector<uint32_t>& next) {
  for (const uint32_t step : next) {
    if (--machines_[member].graph.steps[step].waits == 0) ready_.emplace_back(member, step);
  }
}

void Interpreter::offer(uint32_t member, uint32_t export_index) {
  const Export& block = machines_[member].graph.exports[export_index];
  State& state = states_[member];
  state.available[export_index] = 1;
  read(member, block.place, block.bytes, 1, "export");
  if (state.pulled_by[export_index] != kNobody) transfer(block.peer, state.pulled_by[export_index], export_index);
}

uint8_t& Interpreter::byte(uint32_t member, const Place& place, uint64_t index) {
  const Location location = locate(machines_[member].graph.layouts, place, index);
  std::vector<uint8_t>& bytes = location.scratch ? states_[member].scratch : machines_[member].memory;
  if (location.at < bytes.size()) return bytes[location.at];
  static uint8_t outside;
  problem("an access outside of memory");
  return outside;
}

uint64_t Interpreter::element(uint32_t member, const Place& place, uint64_t index) {
  uint64_t value = 0;
  for (uint64_t j = 0; j < kElementBytes; ++j) value |= uint64_t{byte(member, place, index + j)} << (8 * j);
  return value;
}

// A step reads and writes from when it begins until it ends; an export is read from when it can be until it was taken.
void Interpreter::claim_step(const Running& running, int count) {
  const Step& step = machines_[running.member].graph.steps[running.step];
  if (step.kind == StepKind::multicast) {
    for (uint32_t node = 0; node < step.multicast->parts.size(); ++node) {
      for (const auto& piece : step.multicast->parts[node]) {
        if (node == step.multicast->own) read(running.member, piece.place, piece.bytes, count, "multicast");
        if (node != step.multicast->own) write(running.member, piece.place, piece.bytes, count, 0, "multicast");
      }
    }
    return;
  }
  int own_readers = 0;
  if (step.kind != StepKind::pull) {
    read(running.member, step.source, running.bytes, count, "step");
    own_readers += step.source == step.target;
  }
  if (step.kind == StepKind::reduce) {
    read(running.member, step.operand, running.bytes, count, "step");
    own_readers += step.operand == step.target;
  }
  write(running.member, step.target, running.bytes, count, own_readers, "step");
}

void Interpreter::read(uint32_t member, const Place& place, uint64_t bytes, int count, const char* who) {
  for (uint64_t i = 0; i < bytes; ++i) {
    const Location location = locate(machines_[member].graph.layouts, place, i);
    Claims& claims = location.scratch ? states_[member].scratch_claims : states_[member].client_claims;
    if (location.at >= claims.readers.size()) return problem(std::string("outside of memory reads ") + who);
    claims.readers[location.at] = static_cast<uint16_t>(claims.readers[location.at] + count);
    if (count > 0 && claims.writers[location.at] > 0) {
      return problem("race: member " + std::to_string(member) + " is written to while read by " + who);
    }
  }
}

void Interpreter::write(uint32_t member, const Place& place, uint64_t bytes, int count, int own_readers,
                        const char* who) {
  for (uint64_t i = 0; i < bytes; ++i) {
    const Location location = locate(machines_[member].graph.layouts, place, i);
    Claims& claims = location.scratch ? states_[member].scratch_claims : states_[member].client_claims;
    if (location.at >= claims.writers.size()) return problem(std::string("outside of memory writes ") + who);
    claims.writers[location.at] = static_cast<uint16_t>(claims.writers[location.at] + count);
    if (count > 0 && (claims.writers[location.at] > 1 || claims.readers[location.at] > own_readers)) {
      return problem("race: member " + std::to_string(member) + " is read or written while overwritten by " + who);
    }
  }
}

}  // namespace offpath::testing
