// SPDX-License-Identifier: BSD-3-Clause
// Interpreter: runs the graphs of all members of a team, in a random order of everything that may happen, and a few
// bytes at a time. It knows nothing of algorithms: it says when graphs do not fit together, when they never end and
// when a step writes what another one or a peer still reads.
#pragma once

#include "ops/collectives/collective.hpp"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace offpath::testing {

inline constexpr uint64_t kClientBase = 1 << 20;  // client address of a member's first byte
inline constexpr uint64_t kElementBytes = 8;

using Operator = uint64_t (*)(uint64_t left, uint64_t right);
inline uint64_t add(uint64_t left, uint64_t right) { return left + right; }

// One member: its memory, and what it has been asked to do.
struct Machine {
  ops::Topology topology;
  std::vector<uint8_t> memory;
  graph::Graph graph;
};

// Where byte `index` of a place lies.
struct Location {
  bool scratch = false;
  size_t at = 0;
};
Location locate(const std::vector<graph::Layout>& layouts, const graph::Place& place, uint64_t index);

class Interpreter {
 public:
  Interpreter(std::vector<Machine>& machines, Operator combine, uint64_t seed);

  // Until nothing can happen any more. Empty if all is done, else what is wrong. `absent` never posts the operation.
  std::string run(uint32_t absent = UINT32_MAX);
  bool finished(uint32_t member) const { return states_[member].steps_left + states_[member].exports_left == 0; }

  uint64_t wire_bytes_into(uint32_t node) { return wire_bytes_[node]; }
  // Pulls that found no export: they got nothing.
  uint32_t empty_pulls() const { return empty_pulls_; }
  // Pulls that got less than they would take.
  uint32_t short_pulls() const { return short_pulls_; }

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  struct Claims {
    std::vector<uint16_t> readers, writers;
  };
  struct State {
    std::vector<uint8_t> scratch;
    Claims client_claims, scratch_claims;
    std::vector<std::vector<uint32_t>> exports_after;  // by step
    std::vector<uint8_t> available, asked;             // by export
    std::vector<uint32_t> pulled_by;                   // by export: the step that has asked and waits
    size_t steps_left = 0, exports_left = 0;
  };
  struct Running {
    uint32_t member = 0;
    uint32_t step = 0;
    uint32_t export_index = kNobody;  // of a pull
    uint64_t bytes = 0;
    uint64_t done = 0;
  };

  void post(uint32_t member);
  void begin(uint32_t member, uint32_t step);
  void arm(uint32_t member, uint32_t step_index);
  void transfer(uint32_t member, uint32_t step, uint32_t export_index);
  void move(Running& running);
  void finish(const Running& running);
  void step_done(uint32_t member, uint32_t step);
  void release(uint32_t member, const std::vector<uint32_t>& next);
  void offer(uint32_t member, uint32_t export_index);

  uint8_t& byte(uint32_t member, const graph::Place& place, uint64_t index);
  uint64_t element(uint32_t member, const graph::Place& place, uint64_t index);
  void read(uint32_t member, const graph::Place& place, uint64_t bytes, int count, const char* who);
  void write(uint32_t member, const graph::Place& place, uint64_t bytes, int count, int own_readers, const char* who);
  void claim_step(const Running& running, int count);
  void problem(const std::string& text) {
    if (problem_.empty()) problem_ = text;
  }

  std::vector<Machine>& machines_;
  Operator combine_;
  std::mt19937_64 random_;
  std::vector<State> states_;
  std::vector<uint32_t> late_;  // members that have not posted yet
  std::vector<std::pair<uint32_t, uint32_t>> ready_;
  std::vector<Running> running_;
  std::map<uint32_t, uint64_t> wire_bytes_;
  std::vector<std::pair<uint32_t, uint32_t>> armed_;  // members that have come to their multicast, and the step
  uint32_t empty_pulls_ = 0;
  uint32_t short_pulls_ = 0;
  std::string problem_;
};

}  // namespace offpath::testing
