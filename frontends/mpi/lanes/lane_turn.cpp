// SPDX-License-Identifier: BSD-3-Clause
// A lane's way to its next team: after a loss, once that is settled, or because a service leaves (docs/design/0044-recovery.md).
#include "mpi/job/job.hpp"
#include "mpi/lanes/lane.hpp"
#include "mpi/lanes/offloader.hpp"

#include <algorithm>
#include <utility>

namespace offpath::mpi {
namespace {

constexpr int kGoneOn = 2, kReady = 3;  // tags of a turn
constexpr uint8_t kWord = 1;

}  // namespace

uint64_t Lane::turning_point() const {
  if (phase_ == Phase::settled) return turn_->cut.next();
  if (phase_ != Phase::offloading) return UINT64_MAX;
  if (service_->is_split()) return service_sequence_;
  const Comeback& comeback = turn_->comeback;
  return comeback.said() ? comeback.next() : UINT64_MAX;
}

// This rank's service leaves: it says so of itself.
void Lane::leave() {
  if (phase_ == Phase::offloading && !turn_->comeback.said() && service_->leaves()) say_where();
}

// Whether this rank has another service, once it is known. Nobody waits for a rank that is lost: it would never say.
void Lane::say_where() {
  Comeback& comeback = turn_->comeback;
  if (!past_is_over()) return;  // then all have what was said in that turn
  const bool has_lost = phase_ == Phase::settled;
  if (has_lost && (comeback.refused() || service_->lost_process()))
    return comeback.say(nullptr, nullptr, next_sequence_);
  // Only when it has been asked for all that is before it, as all later operations go to the next team.
  if (has_lost && next_sequence_ < turn_->cut.next()) return;
  const offpath_status_t status = job.go_on();
  if (status == OFFPATH_IN_PROGRESS) return;
  offpath_session_t* now = status == OFFPATH_OK ? job.session() : nullptr;
  const bool stays = now == service_->session();
  if (has_lost) {
    if (stays && !comeback.may_stay(now, service_->losses())) return;
    const bool parts = stays && turn_->cut.heard().own_lost == 0;
    // One that was silent may be so again, which takes long.
    const bool was_silent = turn_->cut.heard().parting.silence_ms != 0;
    if (parts && (was_silent || breaks_.add(Cut::Clock::now()))) now = nullptr;
  } else if (now == nullptr) {
    return;  // it is lost, which is seen elsewhere
  } else if (stays && !turn_->begun()) {
    return;  // there is none but the one that leaves
  } else if (!all_are_ready()) {
    return;
  }
  comeback.say(now, service_->session(), next_sequence_);
}

// Whoever says where it is holds back from then on. So that this is short, all attach before.
bool Lane::all_are_ready() {
  if (!std::exchange(turn_->said_ready, true)) {
    looks_often_ = in_use();
    if (looks_often_) offloader.look_at_lanes_often(true);
    say_to_all(kWord, Seat{shadow_, rank_, size_}, loss_tag(turns_, kReady));
  }
  hear_ready();
  return turn_->ready == size_ - 1;
}

void Lane::hear_ready() {
  hear<uint8_t>(Seat{shadow_, rank_, size_}, loss_tag(turns_, kReady), [this](uint8_t, int) { ++turn_->ready; });
}

void Lane::stop_turning() {
  turn_->said_ready = false;
  if (std::exchange(looks_often_, false)) offloader.look_at_lanes_often(false);
}

void Lane::come_back() {
  const Comeback& comeback = turn_->comeback;
  const bool has_lost = phase_ == Phase::settled;
  if (!comeback.said() && (has_lost || turn_->begun())) say_where();
  if (!comeback.said()) return;
  if (has_lost && (comeback.refused() || service_->lost_process())) {
    report_parting(Job::kAllNative);
    phase_ = Phase::host;
    stop_turning();
    return;
  }
  const auto is_behind = [this](const PostedCall* each) {
    return each->state < PostedState::ended && each->state != PostedState::deferred && !waits_for_next(each->sequence);
  };
  const bool may_go_on = comeback.decided() && past_is_over() && next_sequence_ >= turning_point();
  if (may_go_on && std::none_of(operations_.begin(), operations_.end(), is_behind)) go_on();
}

void Lane::go_on() {
  const Comeback& comeback = turn_->comeback;
  const Seat seat{shadow_, rank_, size_};
  auto next_turn = std::make_unique<Turn>(seat, turns_ + 1);  // may throw, as the next ones; nothing has happened yet
  auto next_service = service_->next(comeback.directory(), comeback.session());
  auto past = std::make_unique<Past>();
  stop_turning();
  if (phase_ == Phase::settled) report_parting(Job::kConnectsAgain);
  past->next = service_sequence_ = turning_point();
  past->turn = std::exchange(turn_, std::move(next_turn));
  past->service = std::exchange(service_, std::move(next_service));
  past->over = size_ == 1;
  past_ = std::move(past);
  say_to_all(kWord, seat, loss_tag(turns_++, kGoneOn));
  own_lost_ = false;
  refused_posts_ = 0;
  broken_.store(false, std::memory_order_release);
  phase_ = Phase::offloading;
}

// Others may not have gone on yet, and lose a service: then they ask what this rank has told, which is all.
void Lane::look_back() {
  Past& past = *past_;
  Cut& cut = past.turn->cut;
  hear<uint8_t>(Seat{shadow_, rank_, size_}, loss_tag(turns_ - 1, kGoneOn), [&](uint8_t, int) { ++past.others; });
  cut.listen();  // after that: what was said before it is here
  const bool was_asked = cut.begun();
  if (was_asked && !cut.said()) {
    Word word;
    word.told = told_;
    word.next = past.next;
    cut.say(word, Cut::Clock::now());
  }
  if (past.others < size_ - 1 || (was_asked && !cut.decided())) return;
  past.over = true;
  past.service.reset();
}

}  // namespace offpath::mpi
