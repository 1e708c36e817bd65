// SPDX-License-Identifier: BSD-3-Clause
#include "policy/adaptation.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace offpath::policy {
namespace {

constexpr uint64_t kRoundNs = 20'000'000;        // a round of short periods lasts so long: an agreement costs 0.1 ms
constexpr uint64_t kExploreBlockNs = 1'000'000;  // the same for a block of one that explores
constexpr uint64_t kMaxBlock = 8192;
constexpr uint64_t kExploreBlocks = 3;
constexpr uint64_t kMostArrival = 8;           // short calls are faster than any agreement, which is no harm
constexpr uint64_t kMostAhead = 32;            // who runs ahead further is left alone
constexpr uint64_t kRoutineDivisor = 4;        // of the budget, where no change was seen
constexpr uint64_t kFirstGuessNs = 1'000'000;  // beside half a period: what an unknown path may cost more, a turn
constexpr uint64_t kMostPatience = 4;          // the budget is the bound; this one is against noise

// More than noise, as for `offpath tune`; and what a change of the program looks like.
constexpr double kGuard = 1.03;
constexpr uint64_t kDriftPermille = 150;
constexpr uint64_t kDriftDeviations = 3;  // where rounds differ much, a change must be larger

bool beyond(uint64_t larger, uint64_t smaller, double factor) {
  return static_cast<double>(larger) > static_cast<double>(smaller) * factor;
}

constexpr const char* kWhyNames[] = {"policy", "remembered", "adapted", "exploring", "forced", "lost"};

}  // namespace

const char* why_name(Why why) { return kWhyNames[static_cast<size_t>(why)]; }

// In blocks of what a program posts before it waits, these look alike.
uint64_t Adaptation::explore_block() const {
  return std::clamp(kExploreBlockNs / std::max<uint64_t>(home_ns_, 1), ahead_, kMaxBlock);
}

uint64_t Adaptation::explore_length() const { return ahead_ + kExploreBlocks * explore_block(); }

uint64_t Adaptation::expected_cost_ns() const {
  const uint64_t loss_ns = other_ns_ > home_ns_ ? other_ns_ - home_ns_ : 0;
  const uint64_t per_turn_ns = other_ns_ == 0 ? home_ns_ / 2 + kFirstGuessNs : loss_ns + home_ns_ / 10;
  return explore_length() * per_turn_ns;
}

bool Adaptation::wants_to_explore() const { return !over_ && home_ns_ != 0 && (waited_ >= patience_ || suspicious()); }

bool Adaptation::suspicious() const { return other_ns_ == 0 || beyond(home_ns_, other_ns_, kGuard); }

bool Adaptation::affords(uint64_t spent_ns, uint64_t youth_ns) const {
  const uint64_t run_ns = UINT64_MAX - youth_ns;
  // Looking again where nothing has changed leaves most of the budget to what has.
  const uint64_t budget_ns = run_ns / 100 * ledger_.percent / (suspicious() ? 1 : kRoutineDivisor);
  return spent_ns + expected_cost_ns() <= budget_ns;
}

Adaptation::Turn Adaptation::post(uint64_t now_ns, uint64_t completions) {
  measure(now_ns);
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

Testimony Adaptation::testify(uint64_t now_ns) {
  auto* const middle = took_ns_.begin() + blocks_ / 2;
  std::nth_element(took_ns_.begin(), middle, took_ns_.begin() + blocks_);
  Testimony own;
  own.period_ns = std::max<uint64_t>(*middle / block_, 1);
  own.spent_ns = ledger_.spent_ns.load();
  own.youth_ns = UINT64_MAX - (now_ns - ledger_.begin_ns.load());
  own.ahead = own_ahead_;
  answered_ = false;
  if (exploring_) return own;
  own.rivals = ledger_.claims.load();
  if (wants_to_explore() && affords(own.spent_ns, own.youth_ns)) {
    ledger_.claims.fetch_add(1);
    claimed_ = true;
  }
  return own;
}

void Adaptation::answered() {
  if (!answered_) own_ahead_ = std::max(own_ahead_, std::min(turn_ - (begin_ + length()), kMostArrival));
  answered_ = true;
}

void Adaptation::agree(const Testimony& all) {
  if (over_) return begin_round(false);
  ahead_ = knows_ahead_ ? std::max(ahead_, all.ahead) : all.ahead;
  knows_ahead_ = true;
  const bool explored = exploring_;
  if (explored)
    judge(all.period_ns);
  else
    observe(all.period_ns);
  if (ahead_ > kMostAhead) over_ = true;
  if (all.broken != 0) {
    over_ = true;
    home_ = Path::host;
    home_why_ = Why::lost;
  }
  begin_round(!explored && all.rivals == 0 && wants_to_explore() && affords(all.spent_ns, all.youth_ns));
}

void Adaptation::observe(uint64_t period_ns) {
  ++waited_;
  const uint64_t change_ns = std::max(period_ns, home_ns_) - std::min(period_ns, home_ns_);
  const uint64_t change_permille = home_ns_ == 0 ? 0 : change_ns * 1000 / std::min(period_ns, home_ns_);
  const bool drifted = change_permille > std::max(kDriftPermille, kDriftDeviations * deviation_permille_);
  deviation_permille_ = (3 * deviation_permille_ + change_permille) / 4;
  if (drifted) {
    patience_ = 1;
    other_ns_ = 0;
  }
  home_ns_ = drifted || home_ns_ == 0 ? period_ns : (3 * home_ns_ + period_ns) / 4;
}

void Adaptation::judge(uint64_t period_ns) {
  if (period_ns > home_ns_) ledger_.spent_ns.fetch_add((period_ns - home_ns_) * length());
  other_ns_ = period_ns;
  waited_ = 0;
  if (!beyond(home_ns_, period_ns, kGuard)) {
    patience_ = std::min(2 * patience_, kMostPatience);
    return;
  }
  home_ = home_ == Path::host ? Path::dpu : Path::host;
  home_why_ = Why::adapted;
  std::swap(home_ns_, other_ns_);
  patience_ = 1;
  ++switches_;
}

void Adaptation::begin_round(bool explores) {
  // What was agreed may be a change that this rank did not see when it testified.
  if (explores && !claimed_) ledger_.claims.fetch_add(1);
  if (!explores) release();
  claimed_ = explores;
  begin_ = turn_;
  exploring_ = explores;
  took_ns_ = {};
  settle_ = ahead_;
  blocks_ = explores ? kExploreBlocks : kBlocks;
  const uint64_t round_block = kRoundNs / kBlocks / std::max<uint64_t>(home_ns_, 1);
  block_ = explores ? explore_block() : std::clamp(round_block, ahead_, kMaxBlock);
}

void Adaptation::release() {
  if (claimed_) ledger_.claims.fetch_sub(1);
  claimed_ = false;
}

}  // namespace offpath::policy
