// SPDX-License-Identifier: BSD-3-Clause
// The office after a loss, or where a service leaves. Each process says where it is now; when all have, each makes another team and window, and says where
// its table lies there; who has heard that of another one may write to it. A service that is lost meanwhile is the next loss.
#include "client/next_session.hpp"
#include "mpi/job/job.hpp"
#include "mpi/lanes/service_team.hpp"
#include "mpi/messages/office.hpp"

#include <algorithm>
#include <exception>

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
    offpath_session_t* now = status == OFFPATH_OK && !cannot_open_ ? job.session() : nullptr;
    if (now == session_ && (!is_asked || !comeback.may_stay(now, losses()))) return;
    if (now == session_ && broken()) {
      const std::vector<uint8_t> how = losses();
      const bool was_silent = std::find(how.begin(), how.end(), OFFPATH_LOSS_SILENCE) != how.end();
      if (was_silent || breaks_.add(Comeback::Clock::now())) now = nullptr;
    }
    has_lost_.store(true, std::memory_order_release);
    comeback.say(now, session_, 0);
  }
  if (comeback.refused() || !comeback.decided()) return;  // who refuses says so for good
  if (!has_opened_) {
    open_again();
    const auto for_peer = [this](int peer) -> const Opened& { return own_opened_[static_cast<size_t>(peer)]; };
    say_to_each(for_peer, resending.seat(), loss_tag(losses_, 0));
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
  const attach::Directory directory = comeback_->directory();
  own_opened_.assign(tables_.size(), {});
  put_away();
  has_opened_ = true;
  ServiceTeam::count_up(team_id_);
  std::fill(tables_.begin(), tables_.end(), 0);
  for (auto& [to, out] : outgoing_) own_opened_[static_cast<size_t>(to)].left = out.forget_region();
  for (auto& [from, in] : incoming_) {
    in.granted.leave_window();
    in.refused = 0;
  }
  // Else services were replaced meanwhile, which all know: the one after this is to be opened.
  const bool is_whole = directory.is_whole();
  session_ = comeback_->session();
  uint64_t table = 0;
  bool made = false;
  try {
    made = is_whole && open_own(session_, directory, &table);
  } catch (const std::exception&) {
    // Without memory. The others wait for what is said about it.
  }
  for (Opened& for_peer : own_opened_) for_peer.table = table;
  cannot_open_ = is_whole && !made && offpath_session_alive(session_) != 0;  // else that is the next loss
}

void Office::take_opened() {
  hear<Opened>(resending.seat(), loss_tag(losses_, 0), [this](const Opened& there, int source) {
    std::lock_guard lock(mutex_);
    ++others_opened_;
    tables_[static_cast<size_t>(source)] = there.table;
    incoming_[source].granted.note_past(there.left);
    if (there.table != 0) grant_early(source);
  });
}

// One that could not be opened whole may have no table of its own.
void Office::put_away() {
  const bool has_own =
      std::none_of(past_.begin(), past_.end(), [this](const Past& one) { return one.table == table_; });
  past_.push_back({session_, team_, window_, has_own ? table_.load() : nullptr, Pool()});
  past_.back().pool = std::exchange(pool_, Pool());
  team_ = nullptr;
  window_ = nullptr;
}

void Office::close(Past& past, bool with_memory) {
  offpath_window_destroy(past.window);
  offpath_team_destroy(past.team);
  if (with_memory) past.pool.close();
  offpath_memory_free(past.session, past.table);
}

// All have left it: what they say by words since then is newer than what its table says.
void Office::leave_past() {
  if (has_opened_) return;
  std::erase_if(past_, [this](Past& past) {
    const bool is_under_way = past.window != nullptr && offpath_window_flush_test(past.window) == OFFPATH_IN_PROGRESS;
    if (is_under_way || !past.pool.is_whole() || past.table == table_) return false;
    if (past.table == first_table_ && first_table_ != nullptr) {
      for (size_t rank = 0; rank < tables_.size(); ++rank) first_held_.push_back(first_table_[rank].held);
      first_table_ = nullptr;
    }
    close(past, true);
    return true;
  });
}

}  // namespace offpath::mpi
