// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/group.hpp"

#include <algorithm>

namespace offpath::mpi {

Group::Group(int count, MPI_Request* requests) : requests_(requests) {
  for (int index = 0; requests != nullptr && index < count; ++index) {
    if (requests[index] == MPI_REQUEST_NULL) continue;
    if (TrackedRef found = tracked.find(requests[index])) members_.push_back({index, std::move(found)});
  }
  if (members_.empty()) return;
  natives_.assign(requests, requests + count);
  for (const Member& member : members_) natives_[static_cast<size_t>(member.index)] = native_of(member);
}

MPI_Request Group::native_of(const Member& member) const {
  return member.tracked->stands != MPI_REQUEST_NULL ? member.tracked->stands : requests_[member.index];
}

Group::Member* Group::at(int index) {
  const auto found = std::lower_bound(members_.begin(), members_.end(), index,
                                      [](const Member& member, int wanted) { return member.index < wanted; });
  return found == members_.end() || found->index != index ? nullptr : &*found;
}

Group::~Group() {
  if (!handed_over_) return;
  auto member = members_.begin();
  for (size_t index = 0; index < natives_.size(); ++index) {
    const bool ours = member != members_.end() && static_cast<size_t>(member->index) == index;
    if (!ours) {
      requests_[index] = natives_[index];
      continue;
    }
    Tracked& tracked_one = *member->tracked;
    if (tracked_one.stands != MPI_REQUEST_NULL) {
      if (member->complete) tracked_one.stands = MPI_REQUEST_NULL;
    } else if (member->complete) {
      requests_[index] = natives_[index];
    }
    if (member->complete && tracked_one.persistent) tracked_one.active = false;
    const bool stays = !member->complete || tracked_one.persistent;
    try {
      if (stays) tracked.add(requests_[index], member->tracked);
    } catch (const std::exception&) {  // without memory it becomes an ordinary one
    }
    ++member;
  }
}

bool Group::all_ready() {
  bool all = true;  // each is asked: that moves it on
  for (Member& member : members_) all = member.tracked->ready(native_of(member)) && all;
  return all;
}

bool Group::any_at_service() const {
  return std::any_of(members_.begin(), members_.end(), [](const Member& m) { return m.tracked->at_service(); });
}

void Group::before_all() {
  for (Member& member : members_) member.tracked->before();
}

int Group::hide_unready() {
  int hidden = 0;
  for (Member& member : members_) {
    member.hidden = !member.tracked->ready(native_of(member));
    natives_[static_cast<size_t>(member.index)] = member.hidden ? MPI_REQUEST_NULL : native_of(member);
    hidden += member.hidden ? 1 : 0;
  }
  return hidden;
}

MPI_Request* Group::hand_over() {
  for (const Member& member : members_) {
    if (!member.hidden) tracked.remove(requests_[member.index]);
  }
  handed_over_ = true;
  return natives_.data();
}

int Group::finish(int index, MPI_Status* status) {
  Member* const member = at(index);
  if (member == nullptr) return MPI_SUCCESS;
  member->complete = true;
  try {
    return member->tracked->after(status);
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

void Group::drop(int index) {
  if (Member* const member = at(index)) member->complete = true;
}

int Group::raise(int index, int code) const {
  const Member* const member = at(index);
  return member == nullptr ? code : member->tracked->raise(code);
}

}  // namespace offpath::mpi
