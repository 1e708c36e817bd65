// SPDX-License-Identifier: BSD-3-Clause
// Operations under way in a simulation: graphs run as the engine runs them (engine/), or as an MPI library does.
//
//   service   short: data at once; who has it not yet asks for it, too (docs/design/0013-push.md). Long: pull -> (until
//   the
//             export is ready) -> data in chunks -> done. Inside a node: pull, offer, copy, done.
//   native    short: data at once. Long: announcement -> answer, once it is wanted -> data in chunks (rendezvous).
//
// A chunk counts as under way until its receiver has taken it, so a receiver that is not in MPI stops its sender.
#pragma once

#include "model/agent.hpp"
#include "model/job.hpp"
#include "model/network.hpp"

#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offpath::model {

// What it costs an agent to move data.
struct Costs {
  double message_ns, operation_ns, step_ns, send_ns_per_byte, receive_ns_per_byte;
  double copy_ns_per_byte, reduce_ns_per_byte;
  double chunk_bytes, window_bytes;
  double eager_bytes;  // of blocks that leave the node, the service's; longer ones are asked for or announced
  bool native;

  static Costs of_service(const Machine& machine);
  static Costs of_native(const Machine& machine);
};

struct ExportState {
  bool ready = false;
  bool served = false;
};

// What a receiver knows about a pull.
struct PullState {
  bool wanted = false;
  bool offered = false;  // native: announced
  bool arrived = false;  // short: all data is here
  bool finished = false;
};

// The part that one member has in an operation.
struct Part {
  uint32_t operation = 0, member = 0, rank = 0;
  Agent* agent = nullptr;
  const Costs* costs = nullptr;
  graph::Graph graph;
  bool posted = false, done = false;
  double done_ns = 0;
  double own_copy_bytes = 0;  // left to the waiting rank
  std::vector<uint32_t> waits;
  std::vector<ExportState> exports;
  std::unordered_map<uint64_t, PullState> pulls;      // by peer and tag
  std::unordered_map<uint64_t, uint32_t> step_of;     // by peer and tag
  std::vector<std::vector<uint32_t>> exports_after;   // by step
  std::vector<std::pair<uint64_t, uint32_t>> parked;  // pulls that came too early: peer and tag, asking member
  uint32_t left = 0;                                  // steps and exports
};

// A block on its way.
struct Stream {
  double left_bytes = 0;  // to be sent
  bool sending = false;
};

// What may be on its way at a time: of one block of the service; with native MPI of all blocks between two ranks, which
// share a socket and its buffers.
struct Window {
  double in_flight_bytes = 0;  // not yet taken by the receiver
  std::vector<Action> waiting;
  double handed_bytes = 0;                           // to the network, ever
  std::vector<std::shared_ptr<const Stream>> queue;  // blocks that are being sent
  // Short messages of native MPI behind what its library had queued before them: when so much has been handed over.
  std::deque<std::pair<double, Action>> behind;
};

class TransferEngine {
 public:
  TransferEngine(Events& events, Network& network, const Machine& machine, std::function<void(Part&)> on_done)
      : events_(events), network_(network), machine_(machine), on_done_(std::move(on_done)) {}

  // Parts of an operation, by member.
  void add(uint32_t operation, std::vector<Part> parts);
  bool knows(uint32_t operation) const { return operations_.contains(operation); }
  Part& part(uint32_t operation, uint32_t member) { return operations_.at(operation)[member]; }
  // The member's part begins; to be called when its agent has learnt of it.
  void begin(Part& part);
  // `target` begins when `origin` has told it to.
  void request(Part& origin, Part& target);

 private:
  static uint64_t key(uint32_t peer, uint32_t tag) { return uint64_t{peer} << 32 | tag; }
  static bool is_native(const Part& part) { return part.costs->native; }
  bool goes_at_once(const Part& part, const graph::Export& block);
  Part& peer_of(const Part& part, uint32_t member) { return operations_.at(part.operation)[member]; }
  uint64_t connection(const Agent* from, const Agent* to);

  enum class Turn : uint8_t { overtakes, waits };  // for data that the MPI library has queued
  void message(Part& from, Part& to, double bytes, double cost_ns, Action action, Turn turn = Turn::overtakes);
  void send(const Part& from, const Part& to, double bytes, Action arrived);
  void start_step(Part& part, uint32_t step);
  void start_pull(Part& part, uint32_t step);
  void work(Part& part, double bytes, double ns_per_byte, Action done);
  void finish_step(Part& part, uint32_t step);
  void make_ready(Part& part, uint32_t index);
  void send_at_once(Part& part, uint32_t index);
  void serve(Part& part, uint32_t index);
  void stream(Part& part, uint32_t index);
  void send_in_turn(const Part& from, const Part& to, double bytes, Action arrived);
  std::shared_ptr<Window> window_for(const Part& from, const Part& to);
  void take(Part& part, uint32_t index);
  void receive(Part& part, uint64_t pull);
  void end_if_done(Part& part);

  Events& events_;
  Network& network_;
  const Machine& machine_;
  std::function<void(Part&)> on_done_;
  std::unordered_map<uint32_t, std::vector<Part>> operations_;
  std::map<std::pair<const Agent*, const Agent*>, uint64_t> connections_;
  std::map<std::pair<const Agent*, const Agent*>, std::shared_ptr<Window>> sockets_;
};

}  // namespace offpath::model
