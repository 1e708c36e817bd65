// SPDX-License-Identifier: BSD-3-Clause
// One multicast allgather over real groups; what nodes tell each other reliably goes from machine to machine, and what is
// fetched from memory to memory.
#pragma once

#include "base/clock.hpp"
#include "fabric/group.hpp"
#include "multicast/task.hpp"

#include <memory>

namespace offpath::testing {

struct TaskResult {
  bool right = false;                // all nodes are done, and have the same and right bytes
  uint64_t repaired = 0, heard = 0;  // chunks, at all nodes
};

class TaskNode : public fabric::Hearer {
 public:
  TaskNode(fabric::Group& by, uint64_t number, const multicast::Shape& shape, uint32_t own)
      : group(by), machine(shape, own, {}), memory(shape.chunks() * by.chunk_bytes()), task_(number) {}
  void on_chunk(const fabric::Label& label, fabric::Bytes chunk) override {
    if (label.task != task_ || machine.look(label.chunk) != multicast::Arrival::fresh) return;
    std::copy(chunk.begin(), chunk.end(), memory.begin() + at(label.chunk));
    ++heard;
    machine.note(label.chunk);
  }
  bool progress() { return group.progress(base::clock_ns(), *this); }
  std::ptrdiff_t at(uint32_t chunk) const { return static_cast<std::ptrdiff_t>(group.chunk_bytes() * chunk); }

  fabric::Group& group;
  multicast::Task machine;
  std::vector<uint8_t> memory;  // as much for each chunk, whoever's it is
  uint64_t heard = 0;

 private:
  const uint64_t task_;
};

// `groups`: of all nodes, with chunks of the same length. Each node sends `chunks`, the last of which is short.
inline TaskResult run_task(const std::vector<std::unique_ptr<fabric::Group>>& groups, uint64_t task, uint32_t chunks) {
  using Kind = multicast::Act::Kind;
  const auto count = static_cast<uint32_t>(groups.size());
  const auto each = static_cast<uint32_t>(groups.front()->chunk_bytes());
  const auto shape = *multicast::Shape::make(std::vector<uint64_t>(count, uint64_t{chunks} * each - 1), each);
  std::vector<std::unique_ptr<TaskNode>> nodes;
  std::vector<uint8_t> truth;
  for (uint32_t own = 0; own < count; ++own) {
    nodes.push_back(std::make_unique<TaskNode>(*groups[own], task, shape, own));
    for (uint32_t i = 0; i < chunks * each; ++i)
      truth.push_back(static_cast<uint8_t>(task + own * 31 + i * 7 + i / each));
    truth.back() = 0;
    std::copy(truth.end() - chunks * each, truth.end(), nodes[own]->memory.begin() + nodes[own]->at(own * chunks));
  }
  bool proper = true;
  const auto perform = [&](uint32_t own, const multicast::Act& act) {
    TaskNode& node = *nodes[own];
    TaskNode& other = *nodes[act.to];
    if (act.kind == Kind::send) {
      for (uint32_t i = 0; i < act.run.count; ++i) {
        const uint32_t chunk = act.run.first + i;
        const auto from = static_cast<size_t>(node.at(chunk));
        const auto mine = fabric::Bytes(node.memory).subspan(from, shape.bytes(own, {chunk, 1}));
        while (!node.group.push(task, chunk, mine)) node.progress();
      }
      while (!node.group.idle()) node.progress();
      node.machine.sent();
    }
    if (act.kind == Kind::token) proper = other.machine.token(own) && proper;
    if (act.kind == Kind::need) proper = other.machine.need(own, act.part) && proper;
    if (act.kind == Kind::ready) proper = other.machine.ready(own, act.part) && proper;
    if (act.kind == Kind::fin) proper = other.machine.fin(own) && proper;
    if (act.kind == Kind::pull) {
      proper = other.machine.may_pull(own, act.part, act.run) && proper;
      const auto from = other.memory.begin() + other.at(act.run.first);
      std::copy(from, from + other.at(act.run.count), node.memory.begin() + node.at(act.run.first));
      proper = node.machine.fetched(act.run) && proper;
    }
  };
  for (const auto& node : nodes) node->machine.go(true);
  for (uint32_t idle = 0; idle < 3;) {
    bool any = false;
    for (uint32_t own = 0; own < count; ++own) {
      any = nodes[own]->progress() || any;
      while (const auto act = nodes[own]->machine.next()) {
        perform(own, *act);
        any = true;
      }
    }
    idle = any ? 0 : idle + 1;
    for (const auto& node : nodes) {
      if (!any) node->machine.quiet();
    }
  }
  TaskResult result{.right = proper};
  for (const auto& node : nodes) {
    result.right = result.right && node->machine.done() && node->memory == truth;
    result.repaired += node->machine.repaired();
    result.heard += node->heard;
  }
  return result;
}

}  // namespace offpath::testing
