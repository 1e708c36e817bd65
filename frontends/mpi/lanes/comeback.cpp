// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/comeback.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

// A lost service is reached again, or its ranks have another one, in less.
constexpr std::chrono::milliseconds kMoment{200};

}  // namespace

bool Comeback::may_stay(offpath_session_t* session, const std::vector<uint8_t>& losses) {
  if (!asked_) asked_ = Asked{client::ask(session), Clock::now()};
  if (!client::has_answered(session, asked_->question)) return false;
  const bool waits = std::find(losses.begin(), losses.end(), OFFPATH_LOSS_SERVICE) != losses.end();
  return !waits || has_another_ || Clock::now() - asked_->since > kMoment;
}

void Comeback::note(const Where& where, int source) {
  addresses_.resize(static_cast<size_t>(seat_.size));
  addresses_[static_cast<size_t>(source)] = where.address;
  largest_next_ = std::max(largest_next_, where.next);
  if (where.is_somewhere == 0) has_none_ = true;
  if (where.is_elsewhere != 0) has_another_ = true;
}

void Comeback::listen() {
  hear<Where>(seat_, tag_, [this](const Where& where, int source) {
    note(where, source);
    ++heard_count_;
  });
}

void Comeback::say(offpath_session_t* session, const offpath_session_t* before, uint64_t next) {
  const bool is_somewhere = session != nullptr && attach::address_of(session, &own_.address) == OFFPATH_OK;
  own_.is_somewhere = is_somewhere ? 1 : 0;
  own_.next = next;
  own_.is_elsewhere = session != before ? 1 : 0;
  stay_ = client::Stay(session);
  note(own_, seat_.rank);
  said_ = true;
  say_to_all(own_, seat_, tag_);
}

}  // namespace offpath::mpi
