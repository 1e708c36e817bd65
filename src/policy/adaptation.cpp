// SPDX-License-Identifier: BSD-3-Clause
#include "policy/adaptation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offpath::policy {
namespace {

constexpr uint64_t kRoundNs = 20'000'000;        // a round of short periods lasts so long: an agreement costs 0.1 ms
constexpr uint64_t kExploreBlockNs = 1'000'000;  // the same for a block of one that explores
constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kMaxBlock = 8192;
constexpr uint64_t kExploreBlocks = 3;
constexpr uint64_t kBlockTurns = 2;            // at least, where they are affordable: single turns differ most
constexpr uint64_t kMemoryTurns = 128;         // what is older counts less and less
constexpr uint64_t kMostArrival = 8;           // short calls are faster than any agreement, which is no harm
constexpr uint64_t kMostAhead = 32;            // who runs ahead further is left alone
constexpr uint64_t kRoutineDivisor = 6;        // of the budget, where no change was seen
constexpr uint64_t kFirstGuessNs = 1'000'000;  // beside half a period: what an unknown path may cost more, a turn
constexpr uint64_t kSilentTurns = 64;  // and a second: who claims and does not call for so long may never do so again
constexpr uint64_t kMostPatience = 4;  // the budget is the bound; this one is against noise

// More than noise, as for `offpath tune`; and what a change of the program looks like.
constexpr double kGuard = 1.03;
constexpr double kHopeless = 1.5;   // that much slower is no bad luck
constexpr uint64_t kFewTurns = 16;  // what was seen in fewer is not trusted
constexpr uint64_t kDriftPermille = 150;
constexpr uint64_t kDriftDeviations = 3;      // where rounds differ much, a change must be larger
constexpr uint64_t kUnchangedPermille = 400;  // a few turns of a path that is as it was

bool beyond(uint64_t larger, uint64_t smaller, double factor) {
  return static_cast<double>(larger) > static_cast<double>(smaller) * factor;
}

// Of the smaller.
uint64_t change_permille(uint64_t one, uint64_t other) {
  return (std::max(one, other) - std::min(one, other)) * 1000 / std::max<uint64_t>(std::min(one, other), 1);
}

constexpr const char* kWhyNames[] = {"policy", "remembered", "adapted", "exploring", "forced", "lost"};

}  // namespace

const char* why_name(Why why) { return kWhyNames[static_cast<size_t>(why)]; }

void Adaptation::Estimate::learn(uint64_t period_ns, uint64_t count) {
  count = std::min(count, kMemoryTurns);
  ns = (ns * turns + period_ns * count) / (turns + count);
  turns = std::min(turns + count, kMemoryTurns);
}

bool Adaptation::wants_to_explore() const {
  return !over_ && at_home_.ns != 0 && (waited_ >= patience_ || suspicious());
}

bool Adaptation::suspicious() const {
  if (elsewhere_.ns == 0 || beyond(at_home_.ns, elsewhere_.ns, kGuard)) return true;
  // One short trial may have been bad luck.
  return elsewhere_.turns < kFewTurns && !beyond(elsewhere_.ns, at_home_.ns, kHopeless);
}

// Of one turn.
uint64_t Adaptation::expected_cost_ns() const {
  if (elsewhere_.ns == 0) return at_home_.ns / 2 + kFirstGuessNs;
  const uint64_t loss_ns = elsewhere_.ns > at_home_.ns ? elsewhere_.ns - at_home_.ns : 0;
  return std::max<uint64_t>(loss_ns + at_home_.ns / 10, 1);
}

uint64_t Adaptation::affordable_block(const Testimony& said) const {
  const uint64_t budget_ns = (UINT64_MAX - said.youth_ns) / 100 * ledger_.percent;
  uint64_t left_ns = budget_ns - std::min(said.spent_ns, budget_ns);
  if (!suspicious()) {
    // Neither may what has changed use it up, nor this what is left for that.
    const uint64_t routine_ns = budget_ns / kRoutineDivisor;
    left_ns = std::min(left_ns, routine_ns - std::min(said.routine_ns, routine_ns));
  }
  const uint64_t turns = left_ns / expected_cost_ns();
  const uint64_t affordable = turns > ahead_ ? (turns - ahead_) / kExploreBlocks : 0;
  // In blocks of what a program posts before it waits, these look alike.
  const uint64_t fewest = std::clamp(kExploreBlockNs / std::max<uint64_t>(at_home_.ns, 1), ahead_, kMaxBlock);
  return affordable < fewest ? 0 : std::min(affordable, std::max(fewest, kBlockTurns));
}

Adaptation::Turn Adaptation::post(uint64_t now_ns, uint64_t completions) {
  measure(now_ns);
  if (claimed_) renew_claim(now_ns);
  open_turns_ = completions == completions_ ? open_turns_ + 1 : 1;
  completions_ = completions;
  own_ahead_ = std::max(own_ahead_, open_turns_);
  const uint64_t into_round = turn_ - begin_;
  ++turn_;
  if (over_) return {home_, home_why_, false};
  if (into_round < length() && exploring_) {
    ++explored_turns_;
    return {home_ == Path::host ? Path::dpu : Path::host, Why::exploring, false};
  }
  return {home_, home_why_, into_round == length()};
}

void Adaptation::measure(uint64_t now_ns) {
  const uint64_t period_ns = now_ns - last_ns_;
  last_ns_ = now_ns;
  // The period that ends now is that of the turn before.
  if (turn_ < begin_ + 1 + settle_) return;
  const uint64_t index = (turn_ - 1 - begin_ - settle_) / block_;
  if (index < blocks_) took_ns_[index] += period_ns;
}

void Adaptation::renew_claim(uint64_t now_ns) {
  const uint64_t until_ns = now_ns + kSilentTurns * at_home_.ns + kSecondNs;
  ledger_.claimed_until_ns = std::max(ledger_.claimed_until_ns.load(), until_ns);
}

Testimony Adaptation::testify(uint64_t now_ns) {
  auto* const middle = took_ns_.begin() + blocks_ / 2;
  std::nth_element(took_ns_.begin(), middle, took_ns_.begin() + blocks_);
  Testimony own;
  own.period_ns = std::max<uint64_t>(*middle / block_, 1);
  own.spent_ns = ledger_.spent_ns.load();
  own.routine_ns = ledger_.routine_ns.load();
  own.youth_ns = UINT64_MAX - (now_ns - ledger_.begin_ns.load());
  own.ahead = own_ahead_;
  own.arrival = own_arrival_;
  answered_ = false;
  if (exploring_) return own;
  own.rivals = now_ns < ledger_.claimed_until_ns.load() ? ledger_.claims.load() : 0;
  if (own.rivals == 0 && wants_to_explore() && affordable_block(own) > 0) {
    ledger_.claims.fetch_add(1);
    claimed_ = true;
    renew_claim(now_ns);
  }
  return own;
}

void Adaptation::answered() {
  if (!answered_) own_arrival_ = std::max(own_arrival_, std::min(turn_ - (begin_ + length()), kMostArrival));
  answered_ = true;
}

void Adaptation::agree(const Testimony& all) {
  if (over_) return begin_round(0);
  ahead_ = knows_ahead_ ? std::max(ahead_, all.ahead) : all.ahead;
  arrival_ = std::max(arrival_, all.arrival);
  knows_ahead_ = true;
  const bool explored = exploring_;
  if (explored)
    judge(all.period_ns);
  else
    observe(all.period_ns);
  if (ahead_ > kMostAhead) over_ = true;
  if (all.broken != 0) {  // until there is another one, of which nothing is known
    if (home_ == Path::dpu && elsewhere_.ns != 0) at_home_ = elsewhere_;  // else a guess
    home_ = Path::host;
    home_why_ = Why::lost;
    elsewhere_ = at_home_before_ = elsewhere_before_ = {};
    patience_ = 1;
  }
  const bool may_explore = !explored && all.broken == 0 && all.rivals == 0 && wants_to_explore();
  begin_round(may_explore ? affordable_block(all) : 0);
}

void Adaptation::observe(uint64_t period_ns) {
  ++waited_;
  const uint64_t change = at_home_.ns == 0 ? 0 : change_permille(period_ns, at_home_.ns);
  const bool drifted = change > std::max(kDriftPermille, kDriftDeviations * deviation_permille_);
  deviation_permille_ = (3 * deviation_permille_ + change) / 4;
  if (drifted) {
    patience_ = 1;
    at_home_before_ = std::exchange(at_home_, {});
    elsewhere_before_ = std::exchange(elsewhere_, {});
  }
  at_home_.learn(period_ns, blocks_ * block_);
}

void Adaptation::judge(uint64_t period_ns) {
  if (period_ns > at_home_.ns) {
    const uint64_t cost_ns = (period_ns - at_home_.ns) * length();
    ledger_.spent_ns.fetch_add(cost_ns);
    if (routine_) ledger_.routine_ns.fetch_add(cost_ns);
  }
  const bool as_before =
      elsewhere_before_.ns != 0 && change_permille(period_ns, elsewhere_before_.ns) <= kUnchangedPermille;
  if (as_before) {
    // The program is the same: only the path in use varies, and its better times count as well.
    at_home_before_.turns /= 2;
    at_home_before_.learn(at_home_.ns, at_home_.turns);
    at_home_ = at_home_before_;
    elsewhere_ = elsewhere_before_;
  }
  at_home_before_ = elsewhere_before_ = {};
  // It may have changed without a sign of it on the path in use.
  if (elsewhere_.ns != 0 && change_permille(period_ns, elsewhere_.ns) > kUnchangedPermille) elsewhere_ = {};
  elsewhere_.learn(period_ns, blocks_ * block_);
  waited_ = 0;
  if (!beyond(at_home_.ns, elsewhere_.ns, kGuard)) {
    patience_ = std::min(2 * patience_, kMostPatience);
    return;
  }
  home_ = home_ == Path::host ? Path::dpu : Path::host;
  home_why_ = Why::adapted;
  std::swap(at_home_, elsewhere_);
  patience_ = 1;
  ++switches_;
}

// 0: does not explore.
void Adaptation::begin_round(uint64_t explore_block) {
  const bool explores = explore_block > 0;
  // What was agreed may be a change that this rank did not see when it testified.
  if (explores && !claimed_) ledger_.claims.fetch_add(1);
  if (!explores) release();
  claimed_ = explores;
  begin_ = turn_;
  exploring_ = explores;
  routine_ = explores && !suspicious();
  took_ns_ = {};
  settle_ = ahead_;
  blocks_ = explores ? kExploreBlocks : kBlocks;
  const uint64_t round_block = kRoundNs / kBlocks / std::max<uint64_t>(at_home_.ns, 1);
  block_ = explores ? explore_block : std::clamp(round_block, std::max(ahead_, kBlockTurns), kMaxBlock);
}

void Adaptation::release() {
  if (claimed_) ledger_.claims.fetch_sub(1);
  claimed_ = false;
}

}  // namespace offpath::policy
