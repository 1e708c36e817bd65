// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/requests/own_requests.hpp"

#include <algorithm>
#include <exception>

namespace offpath::mpi {

OwnRequests::OwnRequests(int count, MPI_Request* requests) : exchanged_(count, requests) {
  MPI_Request* const handles = exchanged_.get();
  for (int index = 0; requests != nullptr && index < count; ++index) {
    Requested* const found = handles[index] == MPI_REQUEST_NULL ? nullptr : offloader.find(handles[index]);
    if (found == nullptr) continue;
    members_.push_back({index, handles[index], Held(*found)});
    followed_ += found->is_generalized() ? 0 : 1;
    goes_beside_native_ = goes_beside_native_ || found->goes_beside_native();
  }
  const bool only_ours = static_cast<size_t>(count) == members_.size();
  if (!only_ours || goes_beside_native_) beside_ = Beside::native_requests;
  if (followed_ != 0) exchanged_.copies();
}

OwnRequests::~OwnRequests() {
  for (const Member& member : members_) {
    if (member.requested->is_generalized()) continue;
    if (!member.complete) native_of(member) = member.handle;
    try {
      if (member.handed_over && !member.complete) offloader.follow(member.handle, *member.requested);
    } catch (const std::exception&) {  // without memory it becomes an ordinary one
    }
  }
}

bool OwnRequests::all_finished() {
  return std::all_of(members_.begin(), members_.end(), [](const Member& member) {
    return !member.requested->is_generalized() || member.requested->over(member.handle);
  });
}

void OwnRequests::await() {
  if (empty() && offloader.needs_attention()) offloader.progress();
  if (all_finished()) return;
  const WaitTimer timer;
  Waiter waiter(beside_);
  for (;;) {
    offloader.progress();
    if (all_finished()) return;
    pause(waiter);
  }
}

void OwnRequests::pause(Waiter& waiter) {
  const bool at_service = std::any_of(members_.begin(), members_.end(),
                                      [](const Member& member) { return member.requested->at_service(); });
  if (at_service)
    waiter.pause();
  else
    waiter.poll();
  if (goes_beside_native_) move_native();
}

int OwnRequests::hide() {
  int hidden = 0;
  for (Member& member : members_) {
    if (member.requested->is_generalized()) continue;
    const bool over = member.requested->over(member.handle);
    native_of(member) = over ? member.handle : MPI_REQUEST_NULL;
    hidden += over ? 0 : 1;
  }
  return hidden;
}

MPI_Request* OwnRequests::hand_over() {
  for (Member& member : members_) {
    if (member.handed_over || member.requested->is_generalized()) continue;
    if (native_of(member) == MPI_REQUEST_NULL) continue;
    offloader.forget(member.handle, *member.requested);
    member.handed_over = true;
  }
  return exchanged_.get();
}

bool OwnRequests::nothing_to_say() const {
  return followed_ == 0 && std::all_of(members_.begin(), members_.end(), [](const Member& member) {
           return member.requested->end(MPI_STATUS_IGNORE) == MPI_SUCCESS;
         });
}

OwnRequests::Member* OwnRequests::at(int index) {
  const auto found = std::lower_bound(members_.begin(), members_.end(), index,
                                      [](const Member& member, int wanted) { return member.index < wanted; });
  return found == members_.end() || found->index != index ? nullptr : &*found;
}

int OwnRequests::finish(int index, MPI_Status* status) {
  Member* const member = at(index);
  if (member == nullptr) return MPI_SUCCESS;
  member->complete = true;
  try {
    return member->requested->end(status);
  } catch (const std::exception&) {
    return MPI_ERR_NO_MEM;
  }
}

void OwnRequests::show(int index, MPI_Status* status) {
  if (Member* const member = at(index)) member->requested->show(status);
}

bool OwnRequests::drop(int index) {
  Member* const member = at(index);
  if (member == nullptr) return true;
  member->complete = true;
  return member->requested->drop();
}

int OwnRequests::raise(int index, int code) {
  const Member* const member = at(index);
  return member == nullptr ? code : member->requested->raise(code);
}

}  // namespace offpath::mpi
