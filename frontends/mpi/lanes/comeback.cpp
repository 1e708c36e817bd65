// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/lanes/comeback.hpp"

#include <algorithm>

namespace offpath::mpi {
namespace {

// A process that is killed closes its sockets one by one, and may have to wait for a core meanwhile.
constexpr std::chrono::milliseconds kMoment{200};

}  // namespace

bool Comeback::may_stay() {
  if (!since_) since_ = Clock::now();
  return has_another_ || Clock::now() - *since_ > kMoment;
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
