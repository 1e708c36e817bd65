// SPDX-License-Identifier: BSD-3-Clause
// Messages of native MPI: what its library does with the graphs of native.cpp.
//
//   short   data at once
//   long    announcement -> answer, once it is wanted -> data in chunks (rendezvous)
//
// A chunk counts as under way until its receiver has taken it, so a receiver that is not in MPI stops its sender.
#pragma once

#include "model/agent.hpp"
#include "model/network.hpp"
#include "model/operation.hpp"

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::model {

// The part that one member has in an operation.
struct Part {
  struct Arrival {
    bool wanted = false;
    bool announced = false;
    bool here = false;  // short: all data
  };
  uint32_t operation = 0, member = 0;
  Agent* agent = nullptr;
  graph::Graph graph = {};
  std::unordered_map<uint64_t, Arrival> arrivals = {};    // by peer and tag
  std::unordered_map<uint64_t, uint32_t> step_of = {};    // by peer and tag
  std::vector<std::vector<uint32_t>> exports_after = {};  // by step
  uint32_t left = 0;                                      // steps and exports
};

class Messages {
 public:
  using OnDone = std::function<void(uint32_t operation, uint32_t member)>;
  Messages(Events& events, Network& network, const Machine& machine, OnDone on_done)
      : events_(events), network_(network), machine_(machine), on_done_(std::move(on_done)) {}

  // Parts of an operation, by member.
  void add(uint32_t operation, std::vector<Part> parts);
  bool knows(uint32_t operation) const { return operations_.contains(operation); }
  // The member's part begins; to be called when its library has learnt of it.
  void begin(uint32_t operation, uint32_t member);
  // The target of a one-sided operation begins when the origin has told it to.
  void begin_target(uint32_t operation);

 private:
  // A block on its way.
  struct Stream {
    double left_bytes = 0;  // to be sent
    bool sending = false;
  };
  // Of all blocks from one rank to another: they share a socket and its buffers.
  struct Socket {
    double in_flight_bytes = 0;  // not yet taken by the receiver
    std::vector<Action> waiting;
    double handed_bytes = 0;                           // to the network, ever
    std::vector<std::shared_ptr<const Stream>> queue;  // blocks that are being sent
    // Short messages behind what the library had queued before them: when so much has been handed over.
    std::deque<std::pair<double, Action>> behind;
  };
  using Pair = std::pair<const Agent*, const Agent*>;

  static uint64_t key(uint32_t peer, uint32_t tag) { return uint64_t{peer} << 32 | tag; }
  bool is_short(uint64_t bytes) const { return static_cast<double>(bytes) <= machine_.native.eager_bytes; }
  Part& part_of(uint32_t operation, uint32_t member) { return operations_.at(operation)[member]; }
  Part& peer_of(const Part& part, uint32_t member) { return part_of(part.operation, member); }

  void say(Part& from, Part& to, Action action, bool in_turn = false);
  void send(const Part& from, const Part& to, double bytes, Action arrived);
  void send_in_turn(const Part& from, const Part& to, double bytes, Action arrived);
  void start_step(Part& part, uint32_t step);
  void start_receive(Part& part, uint32_t step);
  void work(Part& part, double bytes, double ns_per_byte, Action done);
  void finish_step(Part& part, uint32_t step);
  void make_ready(Part& part, uint32_t index);
  void send_at_once(Part& part, uint32_t index);
  void stream(Part& part, uint32_t index);
  void hand_over(Part& part, uint32_t index, const std::shared_ptr<Stream>& stream, Socket& socket);
  void take(Part& part, uint32_t index);
  void release(Part& part, const std::vector<uint32_t>& steps);

  Events& events_;
  Network& network_;
  const Machine& machine_;
  const OnDone on_done_;
  std::unordered_map<uint32_t, std::vector<Part>> operations_;
  std::map<Pair, uint64_t> connections_;
  std::map<Pair, Socket> sockets_;
};

}  // namespace offpath::model
