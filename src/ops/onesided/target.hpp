// SPDX-License-Identifier: BSD-3-Clause
// The target's side of one-sided operations: which memory of its clients is open to whom, and what is done with it.
//
// Accumulates on one member's part of a window go through its lane, one after the other. So they are atomic with each other and those of
// one origin stay in order. Locks are queued in the order of arrival.
// Out-of-window access never touches memory, whatever a request says: every byte of the target's place (layout
// included) lies in a region of the window, or the answer is OFFPATH_ERR_RANGE.
//
// Threads: one worker's.
#pragma once

#include "ops/onesided/locks.hpp"
#include "ops/onesided/regions.hpp"
#include "remote/journal.hpp"

#include <deque>
#include <unordered_map>
#include <vector>

namespace offpath::ops::onesided {

class Target : public graph::Responder {
 public:
  // Answers a request that was put off: Engine::answer.
  using Answerer = std::function<void(graph::RequestId, graph::Answer)>;
  // Told that a signal has come for a client.
  using Teller = std::function<void(graph::ClientId)>;
  explicit Target(
      Answerer answer, Teller tell = [](graph::ClientId) {})
      : answer_(std::move(answer)), tell_(std::move(tell)) {}

  // Windows of a client in one of its teams (its context). Errors: OFFPATH_ERR_ARGUMENT. What is closed or detached is
  // refused to all that comes later; `released` is called, perhaps at once, when nothing of before works on it any
  // more. Not after remove_client().
  // `journal`: where what is atomic is written down if the client's memory is prompt; may be null. `keeps`: members serve it
  // themselves once a service of theirs is lost.
  base::Status open(graph::ClientId client, uint64_t team, uint64_t window, uint64_t base, uint64_t bytes, bool dynamic,
                    std::shared_ptr<remote::Journal> journal = nullptr, bool keeps = false);
  // The client serves it itself from then on: all that comes later is refused as by a lost member, until close().
  base::Status give_up(graph::ClientId client, uint64_t team, uint64_t window, Released released);
  base::Status close(graph::ClientId client, uint64_t team, uint64_t window, Released released);
  base::Status attach(graph::ClientId client, uint64_t team, uint64_t window, uint64_t base, uint64_t bytes);
  base::Status detach(graph::ClientId client, uint64_t team, uint64_t window, uint64_t base, Released released);
  void remove_client(graph::ClientId client);
  // Locks that `rank` holds or waits for in that team end. But where it lives and holds them still, nobody is granted any more: a
  // window that keeps its operations is given up.
  void lose_member(graph::ClientId client, uint64_t team, uint32_t rank, bool lives = false);

  graph::Answer on_request(graph::ClientId client, uint64_t team, uint32_t from, graph::RequestId request,
                           const std::shared_ptr<memory::Port>& memory, std::span<const uint8_t> body) override;
  void on_answered(graph::ClientId client, uint64_t team, graph::RequestId request,
                   const base::Status& status) override;

 private:
  struct Key {
    graph::ClientId client;
    uint64_t team;
    uint64_t window;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  // One that was not refused.
  struct Asked {
    graph::RequestId request;
    uint32_t from;
    Wanted wanted;
    std::span<const uint8_t> data;  // of a short one: in the request, until it is kept
    std::shared_ptr<memory::Port> memory;
    std::vector<uint8_t> kept = {};
    void keep();
  };
  struct Window {
    uint64_t base = 0;  // that offsets count from
    bool dynamic = false;
    Regions regions;
    Locks locks;
    std::shared_ptr<remote::Journal> journal;
    std::shared_ptr<memory::Port> journaled;  // the client's memory through it
    bool keeps = false;
    bool given_up = false;      // or what is atomic is, as a loss has left a part of one behind
    bool lane_busy = false;     // a graph accumulates
    std::deque<Asked> waiting;  // accumulates, until the lane is free
  };
  // A graph or an update under way.
  struct Working {
    graph::ClientId client;
    std::shared_ptr<Window> window;
    std::vector<std::shared_ptr<Region>> regions;
    bool in_lane;
    bool signals = false;
    remote::Journal* journal = nullptr;  // it is written down
  };
  class Short;
  using Windows = std::unordered_map<Key, std::shared_ptr<Window>, KeyHash>;

  Window* find_dynamic(const Key& key);
  void refuse_waiting(Window& window);
  graph::Answer lock(Window& window, uint32_t from, graph::RequestId request, offpath_remote_kind_t kind);
  graph::Answer begin(graph::ClientId client, const std::shared_ptr<Window>& window, Asked asked);
  // Writes it down, if it is atomic and the window has a journal; its memory is the journal's then.
  static remote::Journal* note_begin(Window& window, Asked& asked);
  void end(graph::ClientId client, const Working& ended, const base::Status& status);
  void use_lane(graph::ClientId client, const std::shared_ptr<Window>& window);
  void grant_locks(Window& window);

  Answerer answer_;
  Teller tell_;
  Windows windows_;
  std::unordered_map<graph::RequestId, Working> working_;
};

}  // namespace offpath::ops::onesided
