// SPDX-License-Identifier: BSD-3-Clause
// What an Engine knows (records.hpp) and does, but for its rooms (rooms.def). Internal to engine/. On their own stand
// carriers/ (how blocks leave), coding/ and exchange.hpp (blocks of which one end is there). The rest, by file:
//   engine     clients and teams            messages   who takes what comes
//   transfers  blocks that come             coded      compressed ones
//   members    how members are reached      pushes     short blocks that nobody has asked for
//   absent     those that are not here      near       messages inside the service
//   steps      runs graphs                  local      copies, reductions, computations
//   accesses   goes on with what ports do later
//   requests   asking other members         standing   what operations wait for
//   answers    being asked                  silence    signs of life
//   loss       the dead
//
// Nothing runs or ends an operation from inside anything else: steps that may start and operations that are over are
// queued, as are answers to requests and messages to members of this worker, and settle() works the queues off at the end of each call from outside. So chains
// of steps need no stack, and a reference to an operation stays good until settle().
#pragma once

#include "engine/carriers/sender.hpp"
#include "engine/coding/compression.hpp"
#include "engine/records.hpp"
#include "engine/room.hpp"

namespace offpath::engine {

struct Engine::State {
  State(const Config& c, fabric::Fabric& f, Neighbours& n, Observer& o)
      : config(c), fabric(f), neighbours(n), observer(o) {}

#define OFFPATH_ROOM(type, name) class type;
#include "engine/rooms.def"
  class Rest;  // messages of rooms that are none yet

  // engine.cpp
  Operation& add_operation(const std::shared_ptr<Team>& team, OperationKey key, Part part, Graph graph,
                           uint64_t context);
  void start(Operation& operation);
  void release_first_steps(Operation& operation);
  // A failure is the next one's failure too: it would work on garbage.
  void release_next_in_order(const Operation& operation);
  // Forgets a team that was removed and has nothing left to do.
  void forget_if_unused(const Team& team);

  // steps.cpp
  void start_step(Operation& operation, uint32_t step);
  void start_pull(Operation& operation, uint32_t step);
  // `bytes`: what it has moved.
  void finish_step(Operation& operation, uint32_t step, const base::Status& status, uint64_t bytes);
  void note_moved(Operation& operation, uint64_t bytes);
  void note_coded(Operation& operation, const Coded& coded);
  void release_step(Operation& operation, uint32_t step);
  void end_if_done(Operation& operation);
  void end(Operation& operation, const base::Status& status);
  void settle();
  void retire(Operation& operation);
  // Forgets pulls, streams and local work of an operation that ends early; user memory is not touched any more.
  void release(Operation& operation);

  // messages.cpp
  void receive(fabric::Bytes header, fabric::Bytes payload);
  void furnish();
  void receive_batch(fabric::Bytes entries);
  void receive_one(const wire::Message& message, fabric::Bytes payload);
  // To its room; from the fabric or from a member here.
  void dispatch(const wire::Message& message, fabric::Bytes payload);
  void handle_hello(const wire::Message& message);
  bool is_to_come(const Team& team, const OperationKey& key) const;
  void handle_fail(const wire::Message& message);
  void handle_lost(const wire::Message& message);
  void refuse_message(const char* why);
  std::shared_ptr<Team> find_team(const wire::TeamId& id, uint32_t rank);

  // pushes.cpp
  void handle_push(const wire::Message& message, fabric::Bytes payload);
  // False: there is none.
  bool take_arrived(const Operation& operation, uint64_t pull_id);
  void place_pushed(uint64_t pull_id, fabric::Bytes data);
  // What no step will take: of operations from..end-1, which are over or were left out.
  void drop_arrived(Team& team, uint64_t from, uint64_t end);
  // Says `done`, at leisure.
  void acknowledge(Team& team, const BlockKey& block);

  // absent.cpp
  void handle_absent(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  void keep_early(const TeamKey& key, const wire::Message& message, fabric::Bytes payload);
  void deliver_early(const TeamKey& key);
  void depart(const std::shared_ptr<Team>& team);
  void forget_departed(const TeamKey& key);
  void answer_for_departed(Team& team, const wire::Message& message);

  // requests.cpp
  size_t request_limit() const { return std::min(graph::kMaxRequestBytes, config.chunk_bytes); }
  RequestPeer& requests_with(Team& team, uint32_t rank);
  void send_requests(Team& team, uint32_t target);
  void handle_request(const wire::Message& message, fabric::Bytes body);
  void handle_reply(const wire::Message& message, fabric::Bytes payload);
  void read_data(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  // Those whose data is there and that come first.
  void post_ready(const std::shared_ptr<Team>& team, uint32_t target);
  void number_request(const std::shared_ptr<Team>& team, Request&& request, uint64_t context);
  void place_reply(const std::shared_ptr<Team>& team, const PostedRequest& request, fabric::Bytes payload);
  void end_request(Team& team, const PostedRequest& request, const base::Status& status);
  void begin_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update);
  void apply_update(const DeferredRequest& request, const std::shared_ptr<graph::Update>& update);
  void end_update(const DeferredRequest& request, graph::Update& update, const base::Status& status);
  void finish_request(Team& team, uint64_t context, const base::Status& status);
  void hand_over(const std::shared_ptr<Team>& team, uint32_t from, uint64_t number, fabric::Bytes body);
  void answer_now(RequestId id, const DeferredRequest& request, Answer answer);
  void answer_deferred(RequestId id, Answer answer);
  void reply(Team& team, uint32_t to, uint64_t number, const base::Status& status, fabric::Bytes payload);
  void lose_requests(Team& team, uint32_t rank);

  // accesses.cpp
  memory::Ticket next_ticket() { return {&completions, next_id++}; }
  // Goes on with `then(operation, status)`, now or when the port has done it. Null: the operation is over, there is
  // only to be given back what the access has used.
  template <typename Then>
  void when_done(Operation& operation, const memory::Outcome& outcome, memory::Ticket ticket, Then&& then);
  // The same for what is no operation's: `then(status)`.
  template <typename Then>
  void when_done(const memory::Outcome& outcome, memory::Ticket ticket, Then&& then);
  bool reap();
  void end_access(uint64_t ticket, const base::Status& status);

  // near.cpp
  // A message to, or the answer to a pull of, a member that this service serves.
  void send_near(uint32_t worker, const wire::Message& message, fabric::Bytes payload);
  void offer_near(uint32_t worker, uint64_t pull_id, Location source, uint64_t bytes);
  void take_offer(uint64_t pull_id, Location source, uint64_t bytes);
  void deliver_near();

  // members.cpp
  void say_hello(Team& team);
  // `payload`: of requests and replies.
  void send(Team& team, uint32_t rank, const wire::Message& message, fabric::Bytes payload = {});
  // UINT32_MAX, and a loss to be reported, when the member cannot be reached.
  fabric::Peer peer_of(Team& team, uint32_t rank);

  // transfers.cpp
  bool place_announced();
  // Straight into where it belongs, if this process can use that in place. False: it cannot.
  bool fetch_in_place(const WaitingAnnouncement& next);
  Pull* check_data(const wire::Message& message, size_t payload_bytes);
  // `holder`: whose memory the data is, given back when it is placed; null: the data is the caller's again on return.
  void place(uint64_t pull_id, uint64_t offset, fabric::Bytes data, Chunk* holder = nullptr);
  void note_placed(uint64_t pull_id, uint64_t bytes, const base::Status& status);
  void finish_pull(uint64_t pull_id, const base::Status& status, Cause cause);

  // coded.cpp
  void decode(const wire::Message& message, fabric::Bytes payload, Chunk* holder);

  // local.cpp
  bool move_local();
  using Work = std::shared_ptr<LocalWork>;
  struct Operands;
  // Begins with the next chunk; the bytes of it, 0: none is free for it.
  uint64_t begin_copy(const Work& work);
  uint64_t begin_reduce(const Work& work);
  void write_copy(Operation& operation, const Work& work, uint64_t offset, uint64_t bytes, const uint8_t* data,
                  Chunk* chunk);
  void read_operands(Operation& operation, const Work& work, const Operands& operands);
  void combine(Operation& operation, const Work& work, const Operands& operands);
  void give_back(const Operands& operands);
  void end_chunk(Operation& operation, const Work& work, uint64_t bytes, const base::Status& status, Cause cause);
  void end_work(Operation& operation, const LocalWork& work);
  // One block, if helpers have left any; returns the bytes of memory that it and they have touched since the last one.
  static uint64_t compute_block(LocalWork& work);
  base::Status prepare_compute(const Operation& operation, const Compute& compute, LocalWork& work) const;

  // standing.cpp
  // What is known of a member that neither sends nor takes.
  Waits look_for(const Operation& operation, uint32_t rank) const;

  // silence.cpp
  bool requests_open() const;
  std::set<fabric::Peer> awaited_peers() const;
  void say_address(fabric::Peer peer, wire::Kind kind, uint64_t waited_ns);
  void handle_sign_of_life(const wire::Message& message, fabric::Bytes address);

  // loss.cpp
  void tell_loss(const Team& team, uint32_t rank, Loss how);
  void lose_member(Team& team, uint32_t rank, Loss how);
  // By rank: does the operation still want something from that member, or that member from it?
  std::vector<uint8_t> needed_members(const Operation& operation) const;
  void fail_for_loss(Operation& operation, uint32_t rank);
  bool report_unreachable();

  const Config config;
  fabric::Fabric& fabric;
  Neighbours& neighbours;
  Observer& observer;
  ChunkPool chunks{config.chunk_bytes, config.pool_chunks};
  Sender sender{fabric, chunks};
  Compression compression{config.now_ns, config.coder, fabric};
  Responder* responder = nullptr;
  const std::unique_ptr<Doer> own_doer = config.doer == nullptr ? make_doer(config.scratch_cache_bytes) : nullptr;
  Doer& doer = config.doer == nullptr ? *own_doer : *config.doer;
  std::unordered_map<ClientId, std::shared_ptr<memory::Port>> clients;
  std::map<TeamKey, std::shared_ptr<Team>> teams;
  std::unordered_map<TeamHandle, std::shared_ptr<Team>> team_by_handle;
  std::unordered_map<uint64_t, std::unique_ptr<Operation>> operations;
  std::deque<std::pair<Operation*, uint32_t>> ready;  // steps that may start
  std::deque<Operation*> ended;
  std::deque<NearMessage> near;  // to members that this worker serves
  std::deque<std::pair<RequestId, Answer>> answers;
  std::unordered_map<RequestId, DeferredRequest> deferred;
  std::unordered_map<uint64_t, Pull> pulls;
  std::deque<std::shared_ptr<LocalWork>> local;
  std::shared_ptr<Room> peers, imports, calls;
  std::shared_ptr<Multicasts> multicasts;
  std::shared_ptr<Exports> exports;
  memory::Completions completions{config.wake};
  std::unordered_map<uint64_t, Access> accesses;  // by ticket
  std::deque<WaitingAnnouncement> announcements;
  std::map<TeamKey, std::vector<EarlyMessage>> early;
  std::deque<TeamKey> early_order;
  size_t early_weight = 0;
  std::map<TeamKey, std::shared_ptr<Team>> departed;  // removed, or without a client
  std::deque<TeamKey> departed_order;
  size_t departed_members = 0;
  std::unordered_set<fabric::Peer> given_up;                            // for their silence
  std::vector<uint8_t> own_address;                                     // on the fabric
  std::map<fabric::Peer, Watched> watched;                              // something is awaited from them
  std::map<fabric::Peer, base::OwnWaits> own_waits;                     // as they were told of them
  std::vector<std::pair<std::shared_ptr<Team>, uint32_t>> unreachable;  // found while sending, told from progress()
  uint64_t next_id = 1;
  uint64_t refused = 0;
  Traffic traffic;
};

template <typename Then>
void Engine::State::when_done(Operation& operation, const memory::Outcome& outcome, memory::Ticket ticket,
                              Then&& then) {
  if (!outcome.is_later()) return then(&operation, outcome.status());
  ++operation.accesses;
  accesses.emplace(ticket.number, Access{operation.id, std::forward<Then>(then)});
}

template <typename Then>
void Engine::State::when_done(const memory::Outcome& outcome, memory::Ticket ticket, Then&& then) {
  if (!outcome.is_later()) return then(outcome.status());
  accesses.emplace(ticket.number, Access{0, [then = std::forward<Then>(then)](Operation*, const base::Status& status) {
                                           then(status);
                                         }});
}

}  // namespace offpath::engine
