// SPDX-License-Identifier: BSD-3-Clause
// Decides the path of each call of a lane: what the user wants of this communicator, else the policy, else, where that
// is only advice, what is measured while the program runs (policy/adaptation.hpp; docs/design/0012-running-policy.md).
//
// Agreements are native nonblocking reductions on the council, a communicator that carries nothing else but the adapted
// calls that go natively: all of them, on all ranks, in the order of the calls. A call for which an agreement is
// missing is not decided yet: its lane keeps it, and whatever is posted behind it, until the agreement is there.
//
// Threads: any; those that post on one communicator take turns, as MPI wants it of the program.
#pragma once

#include "mpi/job/preference.hpp"
#include "policy/adaptation.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace offpath::mpi {

// The application's communicator, MPI_COMM_NULL once it was freed. Shared by the lanes that serve it.
using CommCell = std::shared_ptr<std::atomic<MPI_Comm>>;

struct Answer {
  policy::Choice choice;
  policy::Why why = policy::Why::policy;
};

// A call to be decided, as it was posted.
struct Ask {
  policy::Collective collective;
  uint64_t bytes;
  uint64_t posted_ns;
  uint64_t waits;                    // of Counters
  std::optional<Preference> stated;  // by an info key, which wins over the name
};

class Adapter {
 public:
  // `broken`: the lane has lost a service; it must stay.
  Adapter(int rank, uint32_t nodes, CommCell comm, const std::atomic<bool>& broken, Preference preference);
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  // The communicator of the agreements, owned; without one nothing is adapted. Before its first call.
  void sit(MPI_Comm council) { council_ = council; }
  // The call that is being posted.
  Ask ask(policy::Collective collective, uint64_t bytes) const;
  // Its path may change: it goes to decide() in its turn, and natively on the council. The same on all ranks.
  bool adapts(policy::Collective collective, uint64_t bytes) const;
  // For the calls in their order: the same on all ranks for the n-th of the lane. Nothing: an agreement is missing, ask
  // again; only of calls that adapt. Never waits; also under the offloader's lock. May throw bad_alloc.
  std::optional<Answer> decide(const Ask& call);
  MPI_Comm council() const { return council_; }
  // For one that will be posted often: whether the service may ever do it. Counts for nothing.
  bool may_offload(policy::Collective collective, uint64_t bytes) const;

  // By an info key; by all ranks between the same two calls.
  void prefer(Preference preference);
  Preference preference() const { return stated().value_or(Preference::automatic); }

  // Moves open agreements on. True: there is none. Also under the offloader's lock.
  bool idle();

 private:
  struct Key {
    Key(policy::Path home, policy::Why why);
    policy::Adaptation adaptation;
    policy::Testimony own;
    policy::Testimony all;
    MPI_Request agreement = MPI_REQUEST_NULL;
    bool asked = false;  // an agreement was begun and is not used yet
  };
  // Collective, size class, path and algorithm of the table.
  using Name = std::array<uint32_t, 4>;

  std::optional<Answer> look_up(const Ask& call);
  bool adapts(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled) const;
  static Answer prefer_over(const policy::Choice& tabled, Preference preferred);
  Preference preferred(const Ask& call) const { return call.stated.value_or(wished_); }
  std::optional<Preference> stated() const;
  Key& key_of(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled);
  static bool arrived(Key& key);
  void conclude(Key& key);
  void begin_agreement(Key& key);
  uint64_t wish() const;

  int rank_;
  uint32_t nodes_;
  CommCell comm_;
  const std::atomic<bool>& broken_;
  MPI_Comm council_ = MPI_COMM_NULL;
  std::atomic<Preference> stated_;  // asked for every call and block: without the lock
  std::atomic<bool> is_stated_;
  std::mutex mutex_;
  Preference wished_ = Preference::automatic;  // by the communicator's name; of calls that adapt
  std::map<Name, std::unique_ptr<Key>> keys_;
};

}  // namespace offpath::mpi
