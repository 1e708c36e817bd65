// SPDX-License-Identifier: BSD-3-Clause
// Balancer: moves tasks of a worker's clients to other workers of the job, and runs those of others here
// (docs/design/0029-balancing.md). Workers talk by requests between members of a team of the clients; a worker
// answers without the member's process. Used by the worker's thread alone.
//
// At home (away.cpp) a task that is away stands in away_ until nothing of it is under way any more. Whichever result is there first
// ends it; what comes later is let go of. Elsewhere (guests.cpp) it is a guest.
#pragma once

#include "engine/engine.hpp"
#include "service/tasks/tasks.hpp"
#include "tasks/balance.hpp"
#include "tasks/moving.hpp"

#include <list>
#include <map>
#include <set>
#include <string>

namespace offpath::service {

class Balancer : public graph::Responder, public Mover {
 public:
  enum class Mode : uint8_t { off, on, always };  // always: all tasks go, for tests

  // `has_time`: cores of the executors are not needed by programs now. `others`: answers what is not about tasks.
  Balancer(Mode mode, engine::Engine& engine, Tasks& tasks, graph::Responder& others, std::function<bool()> has_time);

  // A client's team, by its handle and its context. `worker`: this one.
  void add_team(engine::ClientId client, engine::TeamHandle handle, const engine::TeamSpec& team, uint32_t worker);
  void remove_team(engine::TeamHandle handle);
  // After the engine has let go of it, before the tasks have.
  void remove_client(engine::ClientId client);
  void lose_member(engine::ClientId client, uint64_t team, uint32_t rank);

  // Whether anything was done.
  bool progress();
  // Until progress() has something to do; -1: not before something else has.
  int timeout_ms() const;
  // Contexts of its requests.
  static constexpr uint64_t kContext = uint64_t{1} << 33;
  static bool owns(uint64_t context) { return (context & kContext) != 0; }
  void on_finished(uint64_t context, const base::Status& status);

  // Responder
  graph::Answer on_request(engine::ClientId client, uint64_t team, uint32_t from, graph::RequestId request,
                           const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) override;
  void on_answered(engine::ClientId client, uint64_t team, graph::RequestId request,
                   const base::Status& status) override;

  // Mover
  void on_over(uint64_t away) override;
  void on_guest_ended(uint64_t guest, const TaskEnd& end) override;
  bool holds_room() const override { return !away_.empty() || !guests_.empty(); }

 private:
  // Another worker, whoever of its clients is asked.
  struct Peer {
    std::string address;
    tasks::Mean trip;                      // what a task takes beside running and waiting there
    std::map<uint32_t, tasks::Mean> runs;  // by function: what it runs there
    std::set<uint32_t> refuses;            // functions, by number here
    bool silent = false;                   // it does not take part
    bool asked = false;
    uint64_t ask_again_ns = 0, pause_ns = 0;
  };
  struct Route {
    engine::ClientId client;
    engine::TeamHandle handle;
    uint64_t team;  // context
    uint32_t rank;
    Peer* peer;
  };
  struct Question {  // an ask under way
    engine::ClientId client;
    Peer* peer;
    uint64_t place;
  };
  struct Away {
    uint32_t function;
    Route route;
    tasks::Away times;
    std::vector<Room::Piece> places;  // for what it writes
    uint64_t argument = 0;            // a place; 0: it is short
    uint64_t outcome = 0;             // a place
    uint32_t requests = 0;            // under way
    bool begun_here = false;          // too
    bool over = false;                // at home
  };
  struct Guest {
    engine::ClientId client = 0;
    uint64_t team = 0;
    uint32_t from = 0;
    uint64_t number = 0;  // at its home
    tasks::Task task = {};
    std::vector<uint64_t> places = {};
    uint64_t argument = 0;
    uint64_t outcome = 0;
    enum class Stage : uint8_t { comes, runs, done, failed, leaves } stage = Stage::comes;
    uint64_t came_ns = 0;
    bool unwanted = false;
    graph::RequestId request = 0, collector = 0;  // that bring it, and collect it; 0: none under way
  };
  static constexpr uint64_t kLongestAskNs = 20000000;  // without an answer; then it is asked again, or not
  struct Asker {
    graph::RequestId request;
    engine::ClientId client;
    tasks::Load load;
    uint64_t since_ns;
    // It may have come in the round that is told by `now_ns`.
    uint64_t waited_ns(uint64_t now_ns) const { return now_ns < since_ns ? 0 : now_ns - since_ns; }
    tasks::Load load_at(uint64_t now_ns) const { return tasks::aged(load, waited_ns(now_ns)); }
  };
  struct Promise {
    uint32_t count;
    uint64_t until_ns;
  };
  using Key = std::tuple<engine::ClientId, uint64_t, uint32_t, uint64_t>;

  // away.cpp
  bool look_at_home(uint64_t now_ns);
  bool send_all();
  bool ask(uint64_t now_ns, const tasks::Load& load);
  void take_grant(const Question& question, const base::Status& status);
  void send_granted();
  // When a task would end there, from now; nothing if that is no gain.
  using EndThere = std::function<std::optional<uint64_t>(const tasks::Task&)>;
  bool send_one(Peer& peer, const EndThere& end_there);
  bool prepare(Away& away, const tasks::Task& task);
  void post(uint64_t number, Away& away, const tasks::Task& task, std::vector<uint8_t> body);
  bool take_back_overdue(uint64_t now_ns, bool home_is_idle);
  void end_request(uint64_t number, bool collects, const base::Status& status);
  void release(const Away& away);
  const Route* route_to(const Peer& peer, engine::ClientId client) const;
  void send_drops();

  // guests.cpp
  graph::Answer take_guest(Guest guest, graph::RequestId request, tasks::Moved moved);
  graph::Answer collect(Guest& guest, uint64_t id, graph::RequestId request);
  graph::Answer results_of(Guest& guest, uint64_t id, graph::RequestId request);
  void host(uint64_t id, Guest& guest);
  void drop(uint64_t id);
  void forget(uint64_t id);
  bool grant(uint64_t now_ns);
  uint32_t coming() const;
  uint32_t promised(uint64_t now_ns);

  const Mode mode_;
  engine::Engine& engine_;
  Tasks& tasks_;
  graph::Responder& others_;
  const std::function<bool()> has_time_;
  std::list<Peer> peers_;
  std::vector<Route> routes_;
  uint64_t next_ = 1;  // of contexts and guests
  std::map<uint64_t, Question> questions_;
  std::map<uint64_t, Away> away_;
  std::vector<std::pair<Peer*, tasks::Grant>> granted_;
  std::vector<std::pair<Route, uint64_t>> drops_;  // to be said
  std::map<uint64_t, Guest> guests_;
  std::map<Key, uint64_t> guest_of_;
  std::map<graph::RequestId, uint64_t> answering_;  // which guest a request is about
  std::vector<Asker> askers_;
  std::list<Promise> promises_;  // that tasks may come, the oldest first
  uint64_t next_look_ns_ = 0;
};

}  // namespace offpath::service
