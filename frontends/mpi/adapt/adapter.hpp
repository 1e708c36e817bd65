// SPDX-License-Identifier: BSD-3-Clause
// Decides the path of each call of a team: what the user wants of this communicator, else the policy, else, where that
// is only advice, what is measured while the program runs (policy/adaptation.hpp; docs/design/0012-running-policy.md).
//
// Agreements are native nonblocking reductions on a communicator that carries nothing else. A call waits for one only
// if this rank is further ahead of the others than before; it moves everything on meanwhile, as a waiting function
// does.
//
// Threads: any; those that post on one communicator take turns, as MPI wants it of the program. Not under the engine's
// lock, but where noted.
#pragma once

#include "adapt/preference.hpp"
#include "policy/adaptation.hpp"

#include <mpi.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace offpath::mpi {

class Team;

struct Answer {
  policy::Choice choice;
  policy::Why why = policy::Why::policy;
};

class Adapter {
 public:
  // `council`: the communicator of the agreements, owned; MPI_COMM_NULL: nothing is adapted.
  Adapter(const Team& team, MPI_Comm council, Preference preference);
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  // For the call that is being posted: the same on all ranks for the n-th of the team. May throw bad_alloc.
  Answer decide(policy::Collective collective, uint64_t bytes);
  // For one that will be posted often: whether the service may ever do it. Counts for nothing.
  bool may_offload(policy::Collective collective, uint64_t bytes) const;

  // By all ranks between the same two calls.
  void prefer(Preference preference);
  Preference preference() const { return preference_.load(std::memory_order_relaxed); }

  // Moves open agreements on. True: there is none. Also under the engine's lock.
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

  Answer look_up(policy::Collective collective, uint64_t bytes);
  bool adapts(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled) const;
  Answer prefer_over(const policy::Choice& tabled) const;
  Key& key_of(policy::Collective collective, uint64_t bytes, const policy::Choice& tabled);
  static bool arrived(Key& key);
  void conclude(Key& key);
  void ask(Key& key);
  uint64_t wish() const;

  const Team& team_;
  MPI_Comm council_;
  std::atomic<Preference> preference_;  // asked for every call and block: without the lock
  std::mutex mutex_;
  bool stated_ = false;  // by an info key, which wins over the name
  std::map<Name, std::unique_ptr<Key>> keys_;
};

// Of the process; begins with MPI_Init.
extern policy::Ledger ledger;

}  // namespace offpath::mpi
