// SPDX-License-Identifier: BSD-3-Clause
// The office after a loss, or where a service leaves. Each process says where it is now; when all have, each makes another team and window, and says where
// its table lies there; who has heard that of another one may write to it. A service that is lost meanwhile is the next loss.
#include "client/next_session.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/service_team.hpp"
#include "mpi/messages/office.hpp"

#include <algorithm>

namespace offpath::mpi {

void Office::come_back() {
  if (comeback_ == nullptr || !on()) return;
  Comeback& comeback = *comeback_;
  comeback.listen();
  if (!comeback.said()) {
    const bool is_asked = broken() || comeback.begun();
    if (!is_asked && !client::leaves(session_)) return;
    const offpath_status_t status = job.go_on();
    if (status == OFFPATH_IN_PROGRESS) return;
    offpath_session_t* const now = status == OFFPATH_OK && !cannot_open_ ? job.session() : nullptr;
    if (now == session_ && (!is_asked || !comeback.may_stay())) return;
    has_lost_.store(true, std::memory_order_release);
    comeback.say(now, session_, 0);
  }
  if (comeback.refused() || !comeback.decided()) return;  // who refuses says so for good
  if (!has_opened_) {
    open_again();
    say_to_all(own_opened_, resending.seat(), loss_tag(losses_, 0));
  }
  take_opened();
  if (others_opened_ < job.size() - 1) return;
  comeback_ = std::make_unique<Comeback>(resending.seat(), ++losses_);
  has_opened_ = false;
  others_opened_ = 0;
}

// What was granted before stays, as payloads may be there, or still come there; its senders have forgotten it.
void Office::open_again() {
  std::lock_guard lock(mutex_);
  has_opened_ = true;
  past_.push_back({team_.exchange(nullptr), std::exchange(window_, nullptr), std::exchange(pool_, Pool())});
  ServiceTeam::count_up(team_id_);
  std::fill(tables_.begin(), tables_.end(), 0);
  for (auto& [to, out] : outgoing_) out.forget_region();
  for (auto& [from, in] : incoming_) {
    in.granted.leave_window();
    in.refused = 0;
  }
  own_opened_ = {};
  const attach::Directory directory = comeback_->directory();
  // Else services were replaced meanwhile, which all know: the one after this is to be opened.
  const bool is_whole = directory.is_whole();
  session_ = comeback_->session();
  const bool made = is_whole && open_own(session_, directory, &own_opened_.table);
  cannot_open_ = is_whole && !made && offpath_session_alive(session_) != 0;  // else that is the next loss
}

void Office::take_opened() {
  hear<Opened>(resending.seat(), loss_tag(losses_, 0), [this](const Opened& there, int source) {
    std::lock_guard lock(mutex_);
    ++others_opened_;
    tables_[static_cast<size_t>(source)] = there.table;
    if (there.table != 0) grant_early(source);
  });
}

}  // namespace offpath::mpi
