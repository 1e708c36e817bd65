// SPDX-License-Identifier: BSD-3-Clause
// Everything offloaded and not yet finished, moved on from inside the application's MPI calls.
//
// Threads: any. One lock over lanes and operations; it may be held during native calls, and is never taken in a
// callback of the native library. A thread that finds it taken while progressing leaves the work to the holder.
#pragma once

#include "mpi/lanes/errors.hpp"
#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/mover.hpp"
#include "mpi/lanes/posted_call.hpp"
#include "mpi/native/handle_table.hpp"
#include "policy/adaptation.hpp"
#include "policy/policy.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace offpath::mpi {

class Offloader {
 public:
  // Some operation is under way, or failed and not yet reported.
  bool needs_attention() const { return attention_.load(std::memory_order_acquire) != 0; }
  // Or a request of the library's is followed. If not, the waiting functions have nothing to do.
  bool has_requests() const { return needs_attention() || followed_.load(std::memory_order_acquire) != 0; }

  // Hands an operation to its lane and gives the application its request. Where the lane says otherwise nothing is
  // done: Route::shadow, the caller issues it natively on the shadow; Route::error, *code is the reason if known.
  Lane::Route submit(Lane& lane, std::unique_ptr<PostedCall> operation, MPI_Request* request, int* code);
  // Takes an operation without a lane and gives the application its request. MPI error code. May throw bad_alloc.
  int submit(std::unique_ptr<Loose> operation, MPI_Request* request);
  // As submit would answer now; to spare the preparation.
  Lane::Route route(Lane& lane, const Call& call);

  // Moves everything on; also native communication. Never waits.
  void progress();
  // A lane holds an operation back. A load.
  bool holds_back() const { return holds_back_.load(std::memory_order_relaxed); }
  // Losses are to be looked for now, and other ranks to be answered. Until one operation was posted they never are.
  bool look_is_due() const;
  // From now on, and no more: `look` is called whenever losses are looked for, Inside. May throw bad_alloc. `owner`: any
  // address, of whom it is.
  void look_also(const void* owner, std::function<void()> look);
  void look_less(const void* owner);
  // Those are called in every round, while anybody wants that: others wait for their answers.
  void look_often(bool begins);
  // So are lanes, while one of them is about to go on with another team.
  void look_at_lanes_often(bool begins) {
    lanes_often_ += begins ? 1 : -1;
    look_often(begins);
  }
  bool looks_often() const { return often_.load(std::memory_order_relaxed) > 0; }
  // At the end ranks that have left are no loss, and nobody waits for words that were not asked for.
  void look_no_more() { in_use_.store(false, std::memory_order_relaxed); }
  bool in_use() const { return in_use_.load(std::memory_order_relaxed); }
  static constexpr uint64_t kLookNs = 25'000'000;
  // As progress(), for all lanes, also those without operations: a rank at its end looks for losses, or only answers
  // the others, who look for them.
  enum class AtEnd { look, answer };
  void progress_all(AtEnd task);
  // Nothing under way any more but what waits for programs.
  bool drained();
  // Ends that.
  void leave();

  // What stands behind a request, or nullptr. Lives as long as the request; hold() for longer.
  Requested* find(MPI_Request request) const { return requests_.find(request); }
  static void hold(Requested& requested) { requested.owners.fetch_add(1, std::memory_order_relaxed); }
  static void release(Requested& requested);
  // A request of the library's concerns us, and does no more: before the library may complete it, as its handle may mean
  // another one from then on, of another thread. It is held in between. May throw bad_alloc.
  void follow(MPI_Request request, Requested& requested);
  void forget(MPI_Request request, Requested& requested);

  // Lanes. add_lane takes one, and needs no memory. enter: it is the communicator's; may throw bad_alloc, then nothing is entered.
  void add_lane(Lanes& one);
  void enter(MPI_Comm comm, Lane& lane) { lanes_by_comm_.insert(comm, &lane); }
  Lane* find_lane(MPI_Comm comm) const { return lanes_by_comm_.find(comm); }
  void forget_comm(MPI_Comm comm, Lane& lane);
  // The program has revoked it: so is what its lanes have.
  void revoke(MPI_Comm comm);
  // As of Lane. May throw bad_alloc.
  std::string compress(const Lane& lane);
  void compress(Lane& lane, const std::string& wish);
  // Frees lanes that were closed and whose operations are done on all ranks.
  void retire();
  // All lanes are done on all ranks. At the end, by all ranks.
  bool departed();
  // Lets go of all lanes; everything is drained. For each the communicator's attribute was already removed.
  void clear();
  // The communicators that have a lane, for their attributes to be removed.
  std::vector<MPI_Comm> communicators();

  // For Lane, under the lock. end: its share at the service; complete: all of it.
  void end(PostedCall& operation, int error);
  void complete(PostedCall& operation);
  void count_posted(const PostedCall& operation);
  // At the service.
  uint64_t posted_count() const { return posted_count_; }
  Errors& errors() { return errors_; }
  Mover& mover() { return mover_; }

 private:
  void advance_lanes();
  bool is_look_late() const;
  void look();
  void hold_back(bool held);
  void finish(Generalized& operation);
  int begin(Generalized& operation);
  static int query_callback(void* operation, MPI_Status* status);
  static int free_callback(void* operation);
  static int cancel_callback(void* operation, int complete);

  std::mutex mutex_;
  std::atomic<uint64_t> attention_{0};
  std::atomic<uint64_t> followed_{0};
  std::atomic<bool> holds_back_{false};
  std::atomic<bool> in_use_{false};
  std::atomic<uint64_t> looked_ns_{0};
  std::atomic<int> often_{0};
  int lanes_often_ = 0;
  uint64_t posted_count_ = 0;  // at the service now
  Lanes lanes_;
  std::vector<Lane*> active_;  // lanes with operations
  std::vector<Loose*> loose_;
  struct Also {
    const void* owner;
    std::function<void()> look;
  };
  std::vector<Also> also_;
  HandleTable<MPI_Request, Requested> requests_;
  HandleTable<MPI_Comm, Lane> lanes_by_comm_;
  Errors errors_;
  Mover mover_;
};

extern Offloader offloader;

// Moves native communication on, for which others may wait. Never waits.
void move_native();

// Holds what stands behind a request.
class Held {
 public:
  explicit Held(Requested& requested) : requested_(&requested) { Offloader::hold(requested); }
  Held(Held&& other) noexcept : requested_(std::exchange(other.requested_, nullptr)) {}
  Held& operator=(Held&& other) noexcept {
    std::swap(requested_, other.requested_);
    return *this;
  }
  ~Held() {
    if (requested_ != nullptr) Offloader::release(*requested_);
  }
  Requested* operator->() const { return requested_; }
  Requested& operator*() const { return *requested_; }

 private:
  Requested* requested_;
};

}  // namespace offpath::mpi
