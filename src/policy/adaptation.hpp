// SPDX-License-Identifier: BSD-3-Clause
// Adaptation: whether one key (a collective of one size class on one team) is better off on the host or on the DPU,
// found out while the program runs (docs/design/0012-running-policy.md). Pure: no MPI, no clock.
//
// The turns of a key (its calls, in the order that MPI makes all ranks follow) are divided into rounds. A round uses
// one path: that in use, or for a few turns the other (it *explores*). With the turn behind its last one each rank
// testifies what the round took; `lead` turns later the maximum of all testimonies begins the next round. State
// depends on turns and agreed testimonies only, so all ranks go the same way at the same turn.
//
// Threads: one at a time. The ledger is for all keys of a process, of any threads.
#pragma once

#include "policy/policy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace offpath::policy {

// What decided. `lost`: a service is gone, all stays on the host until there is another one.
enum class Why : uint8_t { policy, remembered, adapted, exploring, forced, lost };
inline constexpr size_t kWhyCount = size_t(Why::lost) + 1;
const char* why_name(Why why);

// What a rank says when a round has ended. Agreed: the maximum of each field over the ranks.
struct Testimony {
  uint64_t period_ns = 0;   // from one turn of the round to the next
  uint64_t spent_ns = 0;    // what exploring has cost this process, all keys
  uint64_t routine_ns = 0;  // of that, where nothing had changed
  uint64_t youth_ns = 0;    // UINT64_MAX - the time that it has run
  uint64_t ahead = 0;       // most turns that it has posted without completing any
  uint64_t arrival = 0;     // most turns that it has posted before an agreement was there
  uint64_t rivals = 0;      // other keys of this process that explore or ask for it, and are still called
  uint64_t wish = 0;        // of the front end, which says what it means
  uint64_t broken = 0;      // 1: the team has lost a service

  static constexpr size_t kFields = 9;
};
static_assert(sizeof(Testimony) == Testimony::kFields * sizeof(uint64_t));

// What exploring costs a process: at most a part of the time it has run, one key at a time.
struct Ledger {
  uint64_t percent = 1;  // constant once a key is made, the same on all ranks
  std::atomic<uint64_t> begin_ns{0};
  std::atomic<uint64_t> spent_ns{0};
  std::atomic<uint64_t> routine_ns{0};  // part of it
  std::atomic<uint64_t> claims{0};
  std::atomic<uint64_t> claimed_until_ns{0};  // unless it is said again: about, as threads may do so at once
};

class Adaptation {
 public:
  // Of those, all that a turn's caller needs to know.
  struct Turn {
    Path path;
    Why why;
    bool ends_round;  // it testifies now
  };

  Adaptation(Path home, Why why, Ledger& ledger) : ledger_(ledger), home_(home), home_why_(why) {}
  ~Adaptation() { release(); }
  Adaptation(const Adaptation&) = delete;
  Adaptation& operator=(const Adaptation&) = delete;

  // The coming turn needs what was agreed: agree() comes before post().
  bool due() const { return turn_ == begin_ + length() + lead(); }
  // The next turn, posted at that time (times never decrease); `completions`: a count that grows whenever the caller
  // may have completed one.
  Turn post(uint64_t now_ns, uint64_t completions);
  // After a turn that ended a round. The fields of the front end are left to it.
  Testimony testify(uint64_t now_ns);
  // The result is there, or looked for in vain, at the coming turn. Until agree(); idempotent.
  void answered();
  void agree(const Testimony& all);

  Path home() const { return home_; }
  Why home_why() const { return home_why_; }
  uint64_t turns() const { return turn_; }
  uint64_t switches() const { return switches_; }
  uint64_t explored_turns() const { return explored_turns_; }
  uint64_t lead() const { return std::max(kLeastLead, 2 * std::max(ahead_, arrival_)); }
  // As last agreed; 0: unknown.
  uint64_t period_ns(Path path) const { return path == home_ ? at_home_.ns : elsewhere_.ns; }

 private:
  static constexpr size_t kBlocks = 8;
  static constexpr uint64_t kLeastLead = 4;

  // What a path takes, as agreed since the program last changed.
  struct Estimate {
    uint64_t ns = 0;  // 0: unknown
    uint64_t turns = 0;

    void learn(uint64_t period_ns, uint64_t count);
  };

  uint64_t length() const { return settle_ + blocks_ * block_; }
  bool wants_to_explore() const;
  // There is reason to believe that the other path is better.
  bool suspicious() const;
  uint64_t expected_cost_ns() const;
  // Turns per block of a round that explores, as many as are wanted and affordable; 0: not even the fewest are.
  uint64_t affordable_block(const Testimony& said) const;
  void measure(uint64_t now_ns);
  // A key that its program calls no more holds its claim for ever, and no other one shall wait for it.
  void renew_claim(uint64_t now_ns);
  void observe(uint64_t period_ns);
  void judge(uint64_t period_ns);
  void begin_round(uint64_t explore_block);
  void release();

  Ledger& ledger_;
  Path home_;
  Why home_why_;
  uint64_t turn_ = 0;  // the coming one
  uint64_t last_ns_ = 0;

  // The round.
  uint64_t begin_ = 0;
  bool exploring_ = false;
  bool routine_ = false;       // it explores though nothing has changed
  uint64_t settle_ = 1;        // first turns of a round that are not measured
  uint64_t block_ = 1;         // turns per block
  uint64_t blocks_ = kBlocks;  // a round is measured as so many
  std::array<uint64_t, kBlocks> took_ns_{};
  bool answered_ = false;
  uint64_t own_ahead_ = 0;  // so far
  uint64_t own_arrival_ = 0;
  uint64_t open_turns_ = 0;  // posted since the last completion
  uint64_t completions_ = 0;
  bool claimed_ = false;

  // What was agreed.
  uint64_t ahead_ = 4;  // a guess at first
  uint64_t arrival_ = 0;
  bool knows_ahead_ = false;
  Estimate at_home_;
  Estimate elsewhere_;
  // As they were when the path in use drifted; until the other one has been tried.
  Estimate at_home_before_;
  Estimate elsewhere_before_;
  uint64_t deviation_permille_ = 0;  // of a round from those before
  uint64_t patience_ = 1;            // rounds between explorations
  uint64_t waited_ = 0;              // rounds since the last
  uint64_t switches_ = 0;
  uint64_t explored_turns_ = 0;
  bool over_ = false;
};

}  // namespace offpath::policy
